"""Where workflows and arrivals come from.

Every source (inline YAML, WfFormat, DAX, WfCommons recipes) is read into a `TaskGraph`, and one
set of documented rules turns that into the simulator's `WorkflowTemplate`. Traces of single
functions are read into a `Recording` and sampled into a `TraceSample`, made as it is played.
"""
