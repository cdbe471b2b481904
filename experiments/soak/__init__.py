"""Random play through every interface, checked at every move for as long as asked.

`run` draws options, plays rounds and reports. `loop` is a compiled loop that plays most moves; `callers` play the others
through the interfaces.
"""
