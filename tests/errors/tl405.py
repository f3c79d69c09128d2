"""There is no such setting, pass config, or pass.

Settings are listed in the reference and in `tilelab.settings.SETTINGS`. An environment variable TILELAB_...
that is no setting is reported by `tilelab doctor`, with the nearest name.
"""

import tilelab
from tilelab.settings import get


def fails():
    with tilelab.settings(verifi=True):  # error: TL405 no setting is called 'verifi'
        pass


def works():
    with tilelab.settings(verify=True):
        assert get("verify") is True
