#!/usr/bin/env python
"""Django's command line for the portal."""

import os
import sys

from django.core.management import execute_from_command_line

# These run as services, and log. All others answer a person at a terminal.
SERVICES = {"follower", "portal", "prepare", "runserver"}

if __name__ == "__main__":
    if not SERVICES & set(sys.argv[1:2]):
        os.environ.setdefault("MPORTAL_LOG_LEVEL", "WARNING")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")
    execute_from_command_line(sys.argv)
