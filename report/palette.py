"""The colours of all pictures: Okabe and Ito's, told apart by colour-blind readers.

Okabe and Ito, "Color Universal Design", 2008. Readable on white and on near-black.
"""

KINDS = {"learned": "#D55E00", "baseline": "#0072B2", "reference": "#999999"}
"""Of a scheduler."""

SERIES = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Of lines, and of workflows by wf_id; used over again when there are more of them."""

PHASES = {
    "central queue": "#B7A6D8",
    "server cold start": "#777777",
    "container cold start": "#A97C50",
    "transfer": "#F0E442",
    "waiting": "#AAAAAA",
}
"""Of what a container does before it runs; running has the colour of its workflow."""

WARM = "#E58B88"
"""Of a container that is warm and idle."""

CHANGES = {"draining": "#E69F0055", "down": "#80808099", "killed": "#D00000"}
"""Of a server that is out of service, and of the end of a container that is killed."""
KILLED_SHARE = 0.003
"""Width of the mark of such an end in that of a Gantt chart."""

PARTS = {
    "queueing": "#E69F00",
    "server start": "#CC79A7",
    "container start": "#56B4E9",
    "transfer": "#F0E442",
    "execution": "#009E73",
}
"""Of a function's time from its submission to its completion."""

PHASE_HEIGHTS = {
    "central queue": 0.1,
    "server cold start": 0.5,
    "container cold start": 0.35,
    "transfer": 0.65,
    "waiting": 0.2,
    "running": 0.9,
}
"""Of bars in a Gantt chart, in rows: phases are told apart without any colour."""

WARM_HEIGHT = 0.05
"""Of the line that is an idle container, in rows."""
