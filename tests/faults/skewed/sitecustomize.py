"""Python imports this at its start: a process with SKEW_S has another time of day than we have.

Steady clocks, and the times of files, go on as they are. (libfaketime, which does it for any
program, makes Python's `time.sleep` fail.)
"""

import os
import time

if os.environ.get("SKEW_S"):
    import time_machine

    time_machine.travel(time.time() + float(os.environ["SKEW_S"]), tick=True).start()
