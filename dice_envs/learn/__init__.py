"""Learning: `presets` are settings, `builder` makes a learner of them, `ppo` is the algorithm, `policy_gradient` its loss.

`checkpoint` reads and writes the state of a run.
"""
