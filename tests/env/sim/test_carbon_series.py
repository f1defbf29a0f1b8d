"""Carbon intensities from published files: each format, gaps, and what is refused."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from env.base.errors import InputError
from env.base.schema import validated
from env.sim.declared.carbon_series import hours_from, read_carbon
from env.sim.declared.power import Power
from env.sim.declared.regions import Region

DAY = np.datetime64("2023-03-26T00")

ELECTRICITY_MAPS = """date,hour,day,month,weekday,ci
2023-03-26,00:00,26,03,Sunday,300.5
2023-03-26,01:00,26,03,Sunday,0
2023-03-26,02:00,26,03,Sunday,310
"""
EIA = """timestamp,WND,avg_CI
2023-03-26 00:00:00+00:00,3.0,300.5
2023-03-26 01:00:00+00:00,,0
2023-03-26 02:00:00+00:00,2.0,310
"""
ZONE = """datetime,zone_name,carbon_intensity_avg
2023-03-26T02:00:00+02:00,DE,300.5
2023-03-26T01:00:00+00:00,DE,0
2023-03-26T02:00:00Z,DE,310
"""
ENTSO_E = """Time,Carbon Intensity
2023-03-26 00:00:00,300
2023-03-26 00:30:00,301
2023-03-26 01:00:00,0
2023-03-26 01:30:00,0
2023-03-26 02:00:00,300
2023-03-26 02:30:00,320
"""


def history(*values: float | None, key: str = "history", **others: str) -> str:
    """An answer of Electricity Maps, whose times are not whole hours."""
    entries = [
        {"zone": "DE", "carbonIntensity": value, "datetime": f"2023-03-26T0{hour}:07:00.350Z"}
        for hour, value in enumerate(values)
    ]
    return json.dumps({"zone": "DE", key: [{**each, **others} for each in entries]})


def hours(file: Path, begin: int, count: int) -> list[float]:
    """Those that follow from an hour of the day on."""
    return hours_from(DAY + begin, count, read_carbon(file)).tolist()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", ELECTRICITY_MAPS),
        ("a.csv", EIA),
        ("a.csv", ZONE),
        ("a.csv", ENTSO_E),
        ("a.json", history(300.5, 0, 310)),
        ("a.json", history(300.5, 0, 310, key="data", unit="gCO2eq/kWh")),
    ],
)
def test_formats_plain_and_packed(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    for file in tmp_path.iterdir():
        assert hours(file, 0, 3) == [300.5, 0, 310]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("blank.csv", EIA.replace("2.0,310", ",")),
        ("left_out.csv", ELECTRICITY_MAPS.replace("02:00", "03:00")),
        ("half_left_out.csv", ENTSO_E[: ENTSO_E.index("2023-03-26 02:30")]),
        ("twice.csv", ENTSO_E + "2023-03-26 02:30:00,320\n"),
        ("null.json", history(300.5, 0, None)),
        ("short.json", history(300.5, 0)),
    ],
)
def test_a_gap_is_refused_where_it_is_needed(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert hours(file, 0, 2) == [300.5, 0]
    for begin, missing in ((1, "2023-03-26T02"), (-1, "2023-03-25T23")):
        with pytest.raises(
            InputError, match=rf"{name}: hour {missing} \(UTC\) .* 2023-03-26T00 to"
        ):
            hours(file, begin, 2)


def test_power_takes_the_hours_of_a_file(tmp_path: Path) -> None:
    given = {"idle_core_w": 1.0, "busy_core_w": 2.0, "memory_w_per_gb": 0.0, "pue": 1.0}
    given["carbon_intensity_g_per_kwh"] = str(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text(EIA)
    assert validated(Power, given, "power").by_hour == (300.5, 0, 310)
    # Recorded episodes have the hours of a region, not the name of its file.
    assert Region(power=given).power["carbon_intensity_g_per_kwh"] == [300.5, 0, 310]
    (tmp_path / "a.csv").write_text(EIA.replace("2023-03-26 01:00:00+00:00,,0\n", ""))
    with pytest.raises(InputError, match=r"^power: .*a\.csv: hour 2023-03-26T01 \(UTC\)"):
        validated(Power, given, "power")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", EIA.replace("300.5", "-1"), "row 2: avg_CI is -1, a number of at least 0"),
        ("a.csv", EIA.replace("300.5", "300500"), "avg_CI is 300500, .* at most 3000 is needed"),
        ("a.csv", EIA.replace("avg_CI", "kg"), r"\(gCO2e/kWh\) need a column ci, avg_CI"),
        ("a.csv", EIA.replace("2023-03-26 01", "26.3.2023 01"), "value 2: '26.3.2023 01.* a time"),
        ("a.json", history(1, -1), "history.1.carbonIntensity: .* greater than or equal to 0"),
        ("a.json", history(1, unit="kgCO2/kWh"), "history.0.unit: .* found 'kgCO2/kWh'"),
        ("a.json", "{}", "history: missing, required"),
    ],
)
def test_what_is_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        read_carbon(tmp_path / name)


@pytest.mark.realdata
def test_real_samples(data_dir: Path) -> None:
    """PJM has no values in part of 13 March 2022, all others but CISO are whole."""
    gaps = []
    for file in sorted((data_dir / "carbon").iterdir()):
        series = read_carbon(file)
        assert series.max() < 1_000, file
        if series.hasnans:
            gaps.append(file.name[:7])
        else:
            assert len(hours_from(series.index[0], len(series), series)) >= 4_344
    assert gaps == ["us_CISO", "us_PJM_"]
    assert np.isnan(series["2022-03-13T07"])
