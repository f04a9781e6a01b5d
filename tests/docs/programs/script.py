"""A typed program: the synchronous surface."""

from toolreeve import BUILTIN_TOOLS, Failed, Succeeded, SyncToolreeve, TerminalChannel, Toolreeve, ToolResult


def report(reeve: SyncToolreeve) -> int:
    results: list[ToolResult] = reeve.batch([{"tool": "calculate", "args": {"expression": "1"}}])
    for result in results:
        match result:
            case Succeeded():
                print(result.output, result.data["result"])
            case Failed():
                print(result.error.code)
    chained = reeve.chain([{"tool": "read_file", "args": {"path": "a"}}], stop_on_error=False)
    for each in chained:
        if not each.success:
            print(each.error)
    explanation = reeve.explain("write_file", {"path": "a", "content": "b"})
    print(explanation.verdict.decision.word)
    for record in reeve.wait(reeve.audit.list(limit=3)):
        print(record.call_id, record.body.get("tool"))
    pending = reeve.wait(reeve.approvals.list())
    print(len(pending.items), reeve.metrics.render()[:10], reeve.problems, reeve.session, reeve.budget)
    print(reeve.reload(), reeve.cancel("x"))
    flat = reeve.execute_mcp_tool("calculate", {"expression": "1"})
    print(flat["success"])
    undone = reeve.undo(last=True)
    return 0 if undone.success else 1


with Toolreeve.sync(builtin=["file", "-delete_file", "calculate"], approve=TerminalChannel(), mcp_servers={}) as it:
    report(it)
print(BUILTIN_TOOLS.get("calculate"))
