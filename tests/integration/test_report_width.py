"""Reports fit into the windows of a desktop and of a phone."""

import re
import shutil

import pytest

from eval.commands.report import build_report
from records import write_text
from tests.eval.html_page import in_browser
from tests.integration.test_hostile_text import robustness_run, score_runs

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on PATH"),
]

MEASURE = "document.body.append(`[${this.contentDocument.documentElement.scrollWidth}]`)"


@pytest.mark.parametrize("width", [1280, 390])
def test_a_report_with_words_of_300_letters_is_not_wider_than_its_window(tmp_path, width):
    folders = [*score_runs(tmp_path, "x" * 300), robustness_run(tmp_path / "robust", "x" * 300)]
    frames = [
        f'<iframe src="{build_report(folder).as_uri()}" width={width} onload="{MEASURE}"></iframe>'
        for folder in folders
    ]
    write_text(tmp_path / "frames.html", f"<body>{''.join(frames)}")
    profile = tmp_path / "profile"
    dom, _ = in_browser(tmp_path / "frames.html", profile, "--allow-file-access-from-files")
    widths = [int(number) for number in re.findall(r"\[(\d+)\]", dom)]
    assert len(widths) == len(folders)
    assert max(widths) <= width
