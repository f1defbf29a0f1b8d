"""Keep-alive policies that tests share."""

from env.sim.declared.keep_alive_policy import HybridHistogram


def ten_second_bins(bins: int, margin: float) -> HybridHistogram:
    """Two idle times are enough for a histogram of bins of 10 s; without one 50 s are kept."""
    return HybridHistogram(
        bin=10.0,
        bins=bins,
        prewarm_percentile=5.0,
        keep_percentile=99.0,
        margin=margin,
        least_idle_times=2,
        least_variation=1.0,
        fixed_keep=50.0,
        most_out_of_bounds=0.5,
        forecast_margin=0.15,
        forecast_from=10,
        forecast_order=(1, 0, 0),
    )
