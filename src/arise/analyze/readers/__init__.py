"""The readers, most specific format first; a folder format handles everything below its folder."""

from arise.analyze.found import Reader
from arise.analyze.readers.arise_run import AriseRunReader
from arise.analyze.readers.atif import AtifReader
from arise.analyze.readers.claude_code import ClaudeCodeReader
from arise.analyze.readers.codex import CodexReader
from arise.analyze.readers.harbor import HarborReader
from arise.analyze.readers.inspect_log import InspectReader
from arise.analyze.readers.openai_messages import OpenAIMessagesReader
from arise.analyze.readers.opencode import OpencodeReader
from arise.analyze.readers.openhands import OpenHandsFolderReader, OpenHandsReader
from arise.analyze.readers.spans import SpansReader
from arise.analyze.readers.swe import MiniSweReader, SweAgentReader
from arise.analyze.readers.tau2 import Tau2FolderReader, Tau2Reader
from arise.analyze.readers.terminal_bench import TerminalBenchReader, TerminalBenchSummaryReader
from arise.analyze.readers.verifiers import VerifiersReader

FOLDER_READERS: tuple[Reader, ...] = (
    HarborReader(),
    TerminalBenchReader(),
    AriseRunReader(),
    OpenHandsFolderReader(),
    Tau2FolderReader(),
)
FILE_READERS: tuple[Reader, ...] = (
    InspectReader(),
    AtifReader(),
    MiniSweReader(),
    SweAgentReader(),
    ClaudeCodeReader(),
    CodexReader(),
    OpencodeReader(),
    VerifiersReader(),
    Tau2Reader(),
    TerminalBenchSummaryReader(),
    SpansReader(),
    OpenHandsReader(),
    OpenAIMessagesReader(),
)

__all__ = ["FILE_READERS", "FOLDER_READERS"]
