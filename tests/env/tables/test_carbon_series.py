"""Carbon intensities from published files: each format, gaps, and what is refused."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from env.base.errors import InputError
from env.tables.carbon_series import read_carbon

BEGIN = np.datetime64("2023-03-26T00")

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
        assert read_carbon(file).hours(BEGIN, 3).tolist() == [300.5, 0, 310]
        assert read_carbon(file).hours(BEGIN + 1, 1).tolist() == [0]


@pytest.mark.parametrize(
    ("name", "text", "row"),
    [
        ("blank.csv", EIA.replace("2.0,310", ","), "line 4"),
        ("left_out.csv", ELECTRICITY_MAPS.replace("02:00", "03:00"), "line 3"),
        ("half_left_out.csv", ENTSO_E[: ENTSO_E.index("2023-03-26 02:30")], "line 6"),
        ("twice.csv", ENTSO_E + "2023-03-26 02:30:00,320\n", "line 6"),
        ("null.json", history(300.5, 0, None), "entry 3"),
        ("short.json", history(300.5, 0), "entry 2"),
    ],
)
def test_a_gap_is_refused_where_it_is_needed(
    tmp_path: Path, name: str, text: str, row: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert read_carbon(file).hours(BEGIN, 2).tolist() == [300.5, 0]
    with pytest.raises(InputError) as refused:
        read_carbon(file).hours(BEGIN, 3)
    assert str(refused.value).startswith(f"{file}: {row}: hour 2023-03-26T02 (UTC) has no value")


def test_hours_before_the_first_are_a_gap(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(EIA)
    with pytest.raises(InputError, match=r"hour 2023-03-25T23 .* 2023-03-26T00 to 2023-03-26T02"):
        read_carbon(tmp_path / "a.csv").hours(BEGIN - 1, 2)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", EIA.replace("300.5", "-1"), "row 2: avg_CI is -1, a number of at least 0"),
        ("a.csv", EIA.replace("300.5", "300500"), "avg_CI is 300500, .* at most 3000 is needed"),
        ("a.csv", EIA.replace("avg_CI", "kg"), r"\(gCO2e/kWh\) need a column ci, avg_CI"),
        ("a.csv", EIA.replace("2023-03-26 01", "26.3.2023 01"), "line 3: '26.3.2023 01.* a time"),
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
    files = sorted((data_dir / "carbon").iterdir())
    whole = []
    for file in files:
        series = read_carbon(file)
        assert np.nanmax(series.values) < 1_000, file
        if not np.isnan(series.values).any():
            assert len(series.hours(series.times[0], len(series.times))) >= 4_344
            whole.append(file)
    assert [file.name[:7] for file in files if file not in whole] == ["us_CISO", "us_PJM_"]
    with pytest.raises(InputError, match=r"line 1713: hour 2022-03-13T07 \(UTC\)"):
        read_carbon(data_dir / "carbon" / "us_PJM_2022_fuelmix.csv.gz").hours(
            np.datetime64("2022-03-13"), 24
        )
