"""Limits that the runner keeps and the portal enforces."""

# One request: frames, unpacked, or a job specification. A larger body is answered with 413.
MAX_BODY_BYTES = 1024 * 1024
# The text of one line frame. A longer line is reported in several pieces.
MAX_PIECE_BYTES = 32 * 1024
# One encoded frame: JSON takes at most six characters for each byte of its text.
MAX_FRAME_BYTES = 1024 * 1024

# Seconds that a program outside of a job may be without its workers. Workers hold their messages
# for longer: one that has given up a client crashes when that client comes back.
MAX_AWAY_S = 300

# A mesh tree: names of hosts, procs and actors in characters, and counts of messages.
MAX_MESH_NAME_CHARS = 300
MAX_MESH_COUNT = 2**53

# A stack dump: its processes, the characters of all their texts, and of one command line.
MAX_DUMP_PROCESSES = 64
MAX_DUMP_CHARS = 512 * 1024
MAX_DUMP_COMMAND_CHARS = 300

# A sample of a host. Drivers report nonsense for some GPUs; larger values are left out.
MAX_GPUS = 64
MAX_MEMORY_BYTES = 2**60
MAX_CELSIUS = 10_000
MAX_WATTS = 1_000_000

# An upload. Folders count as members, those only implied included.
MAX_ARCHIVE_MEMBERS = 20_000
MAX_ARCHIVE_BYTES = 1024**3
MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 2048

# The code of a job as laptops send it. Folders count as entries; large files travel in blocks.
MAX_CODE_ENTRIES = 100_000
MAX_CODE_BYTES = 64 * 1024**3
MAX_CODE_DEPTH = 100
