"""The Azure traces: column variants, what is left out, and what damaged files get."""

import gzip
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from env.workloads.traces.azure import Azure2019, Azure2021
from env.workloads.traces.trace import Recording
from tests.documents import refused_in_a_line

MIN_DURATION = 0.001
PERCENTS = (1, 5, 25, 50, 75, 95, 99, 100)

Edit = Callable[[str], str]


@pytest.fixture
def day(fixtures: Path, tmp_path: Path) -> Path:
    """A copy of the twelve minutes of eight functions that may be damaged."""
    for file in (fixtures / "azure2019").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def source(folder: Path) -> Azure2019:
    return Azure2019(
        kind="azure2019",
        path=str(folder),
        invocations="invocations.csv",
        durations="durations.csv",
        memory="memory.csv",
    )


def read(folder: Path) -> Recording:
    return source(folder).read(MIN_DURATION)


def refused(trace: Azure2019 | Azure2021, message: str) -> None:
    with refused_in_a_line(message):
        trace.read(MIN_DURATION)


def edit(file: Path, change: Edit) -> None:
    file.write_text(change(file.read_text()))


def of(recording: Recording, name: str) -> tuple[list[int], float, float]:
    """Of a function: invocations a minute, mean duration in seconds and MB."""
    place = recording.names.index(name)
    counts = recording.invocations.counts[:, place].tolist()
    mean = recording.invocations.mean_duration[place]
    return counts, float(mean), float(recording.memory[place])


def same(one: Recording, other: Recording) -> bool:
    return [of(one, name)[:2] for name in one.names] == [of(other, name)[:2] for name in one.names]


def test_original_layout(day: Path) -> None:
    recording = read(day)
    minutes, _, memory = of(recording, "resize")
    assert minutes == [4, 0, 0, 4, 0, 0, 4, 0, 0, 0, 0, 0]
    assert recording.invocations.minutes == 12
    assert of(recording, "pay")[1] == pytest.approx(0.2)  # 200 ms, whatever the percentile
    assert of(recording, "verify")[1] == pytest.approx(60)
    assert memory == of(recording, "index")[2] == 210
    assert math.isnan(of(recording, "daily")[2])  # its application has no row


def test_a_mean_of_0_is_raised_to_the_shortest_duration(day: Path) -> None:
    recording = read(day)
    assert of(recording, "bounce")[1] == pytest.approx(MIN_DURATION)
    assert recording.counts == {"functions with percentiles raised to min_duration": 1}


def test_layouts_of_excerpts(day: Path) -> None:
    """Minutes that begin elsewhere or are named; no trigger and another order; gzipped."""
    original, sound = read(day), (day / "invocations.csv").read_text()
    numbers = ",".join(map(str, range(1, 13)))
    cells = [line.split(",") for line in sound.splitlines()]
    for text in (
        sound.replace(numbers, ",".join(map(str, range(480, 492)))),
        sound.replace(numbers, ",".join(f"minute_{number}" for number in range(1, 13))),
        "\n".join(",".join([row[2], *row[:2], *row[4:]]) for row in cells),
    ):
        (day / "invocations.csv").write_text(text)
        assert same(read(day), original)
    for file in list(day.iterdir()):
        (day / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert same(read(day), original)


def test_memory_divided_among_functions_is_multiplied(day: Path) -> None:
    names = [f"AverageAllocatedMb{part}" for part in ("", *map("_pct{}".format, PERCENTS))]
    application = [205, 150, 160, 200, 210, 220, 260, 280, 301]
    rows = [["HashFunction", "HashOwner", "HashApp", "SampleCount", *names]]
    for function in ("resize", "index"):
        rows.append([function, "team", "photos", "9", *(str(mb / 7) for mb in application)])
    rows.append(["cart", "team", "shop", "9", *(str(mb) for mb in application)])
    rows.append(["send", "team", "mail", "9", "12.3", "", *(str(mb / 7) for mb in range(8, 15))])
    (day / "memory.csv").write_text("\n".join(map(",".join, rows)))
    recording = read(day)
    assert of(recording, "resize")[2] == pytest.approx(205)
    assert of(recording, "cart")[2] == 205
    assert of(recording, "send")[2] == pytest.approx(12.3 * 70)  # 861 / 70, 8 / 7 and so on
    assert math.isnan(of(recording, "pay")[2])
    assert recording.counts["memory shares, multiplied to the application's"] == 3


def test_rows_that_cannot_be_used_are_counted(day: Path) -> None:
    edit(day / "invocations.csv", lambda text: text + "team,mail,idle,timer" + ",0" * 12 + "\n")
    edit(day / "invocations.csv", lambda text: text.replace("backup,daily", "backup,weekly"))
    edit(day / "durations.csv", lambda text: text.replace("80,80,100,120", "80,80,,120"))
    edit(day / "memory.csv", lambda text: text.replace(",mail,", ",post,"))
    recording = read(day)
    assert recording.names == ("cart", "pay", "resize", "index", "bounce", "verify")
    left_out = {what: n for what, n in recording.counts.items() if what.endswith(", left out")}
    assert left_out == {
        "functions never invoked, left out": 1,  # idle
        "durations of functions without invocations, left out": 1,  # daily
        "functions without durations, left out": 2,  # weekly has none, those of send are blank
        "rows of durations with a blank, left out": 1,  # send
        "memory of functions without invocations, left out": 1,  # the application post
    }


def test_rows_of_one_function_are_merged(day: Path) -> None:
    """Invocations by minute, whatever the trigger; durations by Count, memory by SampleCount."""
    edit(day / "invocations.csv", lambda text: text + "team,shop,cart,timer,9" + ",0" * 11 + "\n")
    head, *rows = (day / "durations.csv").read_text().splitlines()
    rows = [row for row in rows if ",cart," not in row]
    rows.append("team,shop,cart,60000,1,60000,60000" + ",60000" * 7)
    rows.append("team,shop,cart,300,100,300,300" + ",300" * 7)
    rows.append("team,shop,cart,7000,,7000,7000" + ",7000" * 7)  # without a count: no weight
    (day / "durations.csv").write_text("\n".join([head, *rows]))
    # 140 MB of 720 samples are there already.
    edit(day / "memory.csv", lambda text: text + "team,shop,80,240" + ",240" * 8 + "\n")
    recording = read(day)
    minutes, mean, memory = of(recording, "cart")
    assert minutes == [14] + [5] * 11
    assert mean == pytest.approx((1 * 60 + 100 * 0.3) / 101)  # 0.891 s
    assert memory == pytest.approx((720 * 140 + 80 * 240) / 800)
    assert {what: n for what, n in recording.counts.items() if "repeated" in what} == {
        "repeated rows of invocations, summed by minute": 1,
        "repeated rows of durations, merged": 2,
        "repeated rows of memory, merged": 1,
    }


def test_functions_of_one_name_in_two_applications_are_two(day: Path) -> None:
    edit(day / "invocations.csv", lambda text: text + "team,mail,cart,http" + ",1" * 12 + "\n")
    edit(day / "durations.csv", lambda text: text + "team,mail,cart,50,9,50,50" + ",50" * 7 + "\n")
    recording = read(day)
    assert {"team-shop-cart", "team-mail-cart"} < set(recording.names)
    assert not any("repeated" in what for what in recording.counts)


def test_a_day_without_a_memory_file(day: Path) -> None:
    (day / "memory.csv").unlink()
    refused(source(day), f"{day / 'memory.csv'}: no such file; workload.source.memory=null draws")
    recording = source(day).model_copy(update={"memory": None}).read(MIN_DURATION)
    assert np.isnan(recording.memory).all()


@pytest.mark.parametrize(
    ("name", "sound", "damaged", "message"),
    [
        ("invocations", ",5,6,7,", ",5,7,", "columns of minutes are "),
        ("invocations", "queue,0,0,8", "queue,0,0,8.5", "In CSV column 3: Row #5: CSV conversion"),
        ("invocations", "queue,0,0,8", "queue,8", "CSV parse error: Row #5: Expected 16 columns,"),
        ("invocations", "HashFunction", "HashFunktion", "column 'HashFunction' is missing (did"),
        ("invocations", "HashApp", "HashOwner", "column 'HashOwner' is there twice"),
        ("invocations", "photos,index,", "photos,,", "row 5: HashFunction is blank, a name is"),
        ("durations", "24,200,200,200,", "24,200,200,-200,", "row 8: perce"),
        (
            "durations",
            "80,80,100,120",
            "80,80,130,120",
            "row 5: percentile_Average is 80, 80, 130, 120, ",
        ),
    ],
)
def test_damaged_files(day: Path, name: str, sound: str, damaged: str, message: str) -> None:
    assert sound in (day / f"{name}.csv").read_text()
    edit(day / f"{name}.csv", lambda text: text.replace(sound, damaged))
    refused(source(day), f"{day / name}.csv: {message}")


def test_files_that_are_no_tables(day: Path) -> None:
    name = "durations.csv"
    file, sound = day / name, (day / name).read_text()
    file.write_text("")
    refused(source(day), f"{file}: empty, a header and at least 1 row are needed")
    file.write_text(sound.splitlines()[0] + "\n")
    refused(source(day), f"{file}: no rows under the header, at least 1 is needed")


def invocations_2021(path: Path) -> Recording:
    return Azure2021(kind="azure2021", path=str(path)).read(MIN_DURATION)


def test_2021_states_every_invocation(fixtures: Path) -> None:
    recording = invocations_2021(fixtures / "azure2021.csv")
    assert recording.names == ("cart", "resize", "pay", "send")
    assert recording.invocations.requests.tolist() == [
        (0.4, 3, MIN_DURATION),  # measured as 0
        (0.5, 0, 0.25),
        (0.5, 2, 3.0),
        (60.5, 0, 0.5),
        (120.0, 1, 10.0),
        (200.0, 0, 0.125),
    ]
    assert recording.invocations.minutes == 4
    assert recording.invocations.mean_duration[0] == pytest.approx((0.25 + 0.5 + 0.125) / 3)
    assert np.isnan(recording.memory).all()
    assert recording.counts == {
        "invocations that began before the trace, left out": 1,
        "durations raised to min_duration": 1,
    }


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("folder", "minutes"), [("azure2019_500f_8h", 480), ("azure2019_200f_24h", 1440)]
)
def test_real_samples_of_2019(data_dir: Path, folder: str, minutes: int) -> None:
    with gzip.open(data_dir / folder / "invocations.csv.gz", "rt") as file:
        rows = [line.rstrip().split(",") for line in file]
    recording = read(data_dir / folder)
    assert recording.invocations.minutes == minutes
    assert len(recording.names) == len(rows) - 1
    assert not any("left out" in what for what in recording.counts)
    stated = sum(int(cell) for row in rows[1:] for cell in row[-minutes:])
    assert recording.invocations.count(0, minutes).sum() == stated
    # Both excerpts hold containers of applications, whether or not their memory came in shares.
    assert 60 < recording.memory.min() < recording.memory.max() < 2000
    assert 130 < np.median(recording.memory) < 170


@pytest.mark.realdata
def test_real_sample_of_2021(data_dir: Path) -> None:
    recording = invocations_2021(data_dir / "azure2021" / "invocations.csv.gz")
    with gzip.open(data_dir / "azure2021" / "invocations.csv.gz", "rt") as file:
        rows = [line.rstrip().split(",") for line in file][1:]
    assert len(recording.names) == len({(app, function) for app, function, _, _ in rows})
    requests = recording.invocations.requests
    assert requests["duration"].sum() == pytest.approx(sum(float(row[3]) for row in rows))
    assert (np.diff(requests["time"]) >= 0).all() and requests["time"][0] >= 0
