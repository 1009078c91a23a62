"""Started as a program: the child as it is, with stand-ins for the calls to SkyPilot."""

from monarch_client.skypilot.child import main

if __name__ == "__main__":
    main("tests.unit.skypilot.standin_calls")
