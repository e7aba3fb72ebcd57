"""From graded rollouts to a better policy: rewards, advantages, filtering, stitching, and the DPPO loss.

Only modules that compute gradients import torch (the extra ``train``); everything else here runs on the base install.
"""
