from rich.table import Table


def write_files(folder, run, results, statistics, width):
    t = Table()
    for c in ("scenario", "policy", "J", "flow_time"):
        t.add_column(c)
    for (s, p), g in results.groupby(["scenario", "policy"], sort=False):
        t.add_row(s, p, f"{g.J.mean():.3f}", f"{g.flow_time.mean():.3f}")
    return t
