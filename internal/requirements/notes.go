package requirements

// Notes say of a row where this program does not do it to the letter, and why.
func Notes() map[string]string {
	const cancelled = "The review is resolved as `cancelled`: no person decided about the iteration, and `rejected` would say that one did."
	return map[string]string{
		"ALF-73": "Each agent's run opens `invoke_agent`. The run of a workflow opens `invoke_workflow`, the name that OpenTelemetry has for it.",
		"RON-20": "The `loopId` is the run's id, a slash and the id of the review within the run.",
		"RON-37": "The `loopId` is the run's id, a slash and the id of the review within the run.",
		"RON-46": cancelled,
		"RON-71": cancelled,
		"RON-76": "Of a server that was started with `--on-shutdown teardown`. By default a server parks its runs, and the next server resumes them.",
	}
}
