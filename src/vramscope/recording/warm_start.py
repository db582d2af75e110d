"""What `virtual/warm_process.py` starts: recording/warm.py with the path that a script's process has.

It is a file, as the frames of one in this folder are no part of a program's stacks."""

import sys

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # this folder, whose files would hide libraries
    from vramscope.recording.warm import serve

    serve(sys.argv[1:])
