package cli

import "testing"

// The rule that a question offers is accepted for the run that asks, and for no other one.
func TestAnOfferedRuleIsAcceptedFromTheCommandLine(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": "identity: {name: a}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\n",
		"script.yaml": "- tool_calls: [{name: fs.write, arguments: {path: out/1.txt, content: x}}]\n" +
			"- tool_calls: [{name: fs.write, arguments: {path: out/2.txt, content: x}}]\n- text: the end\n",
	})
	p.exits(exitParked, "run", "agent.yaml", "go")
	id := p.newest()
	p.exits(2, "runs", "approve", id, "1-1", "--remember", "--args", `{"path": "b.txt", "content": "x"}`)
	p.exits(0, "runs", "approve", id, "1-1", "--remember", "--resume")
	p.exits(exitParked, "run", "agent.yaml", "go")
	p.exits(exitParked, "runs", "approve", p.newest(), "1-1", "--resume")
}
