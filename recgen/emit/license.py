"""The license at the top of what is generated."""

from __future__ import annotations


def license_lines(text: str) -> list[str]:
    """The lines of the comment, without their #: the tag that tools look for where the text is an SPDX expression.

    The spec's reader has seen to it that no line is anything but printable text.
    """
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    if not text:
        return []
    try:
        return [f"SPDX-License-Identifier: {canonicalize_license_expression(text)}"]
    except InvalidLicenseExpression:
        return text.split("\n")
