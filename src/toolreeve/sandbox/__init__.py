"""Where does it run? Programs run in a place that the kernel closes: what they may not touch is not there.

The processes that hold such a place import only what stands in this folder and the standard library, so that they stay
small; nothing is imported here.
"""
