import io
import zipfile
from pathlib import Path

import docx
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from tests.tools.file_tools import FileTools
from toolreeve.core.errors import ErrorCode


def word(path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("First paragraph")
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    document.add_paragraph("Last paragraph")
    document.save(str(path))


def pdf(path: Path, text: str, *, password: str | None = None) -> None:
    writer = PdfWriter()
    page = writer.add_blank_page(width=200, height=200)
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    fonts = DictionaryObject({NameObject("/F1"): font})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    stream = DecodedStreamObject()
    stream.set_data(f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode())
    page[NameObject("/Contents")] = stream
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)


def test_the_text_of_a_word_document_is_read_in_order(file_tools: FileTools) -> None:
    word(file_tools.root / "a.docx")

    data = file_tools.data("read_file", path="a.docx")

    assert data["content"] == "First paragraph\nleft\tright\nLast paragraph"
    assert (data["lines"], data["size"]) == (3, (file_tools.root / "a.docx").stat().st_size)


def test_a_document_is_read_by_lines_like_any_text(file_tools: FileTools) -> None:
    word(file_tools.root / "a.docx")

    output = file_tools.call("read_file", path="a.docx", limit=1)

    assert output.main == "First paragraph\n"
    assert file_tools.follow(output.data["next"]).main == "left\tright\n"


def test_the_text_of_a_pdf_is_read(file_tools: FileTools) -> None:
    pdf(file_tools.root / "a.pdf", "Hello from a PDF")

    assert file_tools.data("read_file", path="a.pdf")["content"] == "Hello from a PDF"


def test_an_encrypted_pdf_says_that_it_is(file_tools: FileTools) -> None:
    pdf(file_tools.root / "a.pdf", "secret", password="open sesame")

    code, message = file_tools.failure("read_file", path="a.pdf")

    assert code is ErrorCode.READ_ERROR
    assert "encrypted" in message


def test_what_is_no_document_says_so(file_tools: FileTools) -> None:
    file_tools.write("a.docx", b"not a zip")
    file_tools.write("b.pdf", b"%PDF-1.7 nonsense")
    file_tools.write("c.docx", b"")
    with zipfile.ZipFile(file_tools.root / "d.docx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types")

    for path in ("a.docx", "b.pdf", "c.docx", "d.docx"):
        code, message = file_tools.failure("read_file", path=path)
        assert code is ErrorCode.READ_ERROR
        assert path in message


def test_an_archive_made_to_unpack_to_gigabytes_is_not_opened(file_tools: FileTools) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"\0" * (130 * 1024 * 1024))
    file_tools.write("bomb.docx", packed.getvalue())

    code, message = file_tools.failure("read_file", path="bomb.docx")

    assert code is ErrorCode.READ_ERROR
    assert "more than is safe" in message
