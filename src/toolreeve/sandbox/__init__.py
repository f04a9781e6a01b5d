"""Sandbox: programs see only what they may touch.

Supervisor, slots and reaper import only this package and the standard library, so that they stay small: nothing is
imported here.
"""
