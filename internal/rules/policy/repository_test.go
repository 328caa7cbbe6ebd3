package policy_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

func TestACommandThatWritesARepositoryAsksAsTheSettingSays(t *testing.T) {
	repository := func(path string, outside bool) event.PathUse {
		return event.PathUse{Path: path, Outside: outside, Write: true, Tree: true, Repository: true}
	}
	call := func(words []string, paths ...event.PathUse) *event.ToolCall {
		return &event.ToolCall{Tool: "shell.exec", Facts: &event.Facts{Risk: event.RiskExecute, Paths: paths, Commands: []event.Command{{Words: words}}}}
	}
	commit := []string{"git", "commit", "-m", "x"}
	own, of := repository(".git", false), func(r policy.Rules) policy.Rules {
		r.Declared, r.Repositories, r.Nested = true, []string{"/main/.git"}, []policy.Pattern{"lib/.git/**"}
		return r
	}
	config := event.PathUse{Path: ".git/config", Write: true}
	allows := func(command string) policy.Rules {
		return of(policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionAllow, Tool: "shell.exec", Command: command}}})
	}
	const asks = "protected_paths: .git/**"
	for _, c := range []struct {
		name  string
		rules policy.Rules
		call  *event.ToolCall
		want  event.Decision
		rule  string
	}{
		{"the workspace's", of(policy.Rules{}), call(commit, own), event.DecisionAsk, asks},
		{"told to ask", of(policy.Rules{Git: policy.GitAsk}), call(commit, own), event.DecisionAsk, asks},
		{"although the tool never asks", of(policy.Rules{Open: []string{"shell.exec"}, Mode: policy.ModeBypass}), call(commit, own), event.DecisionAsk, asks},
		{"outside, as a worktree's", of(policy.Rules{}), call(commit, repository("/main/.git", true)), event.DecisionAsk, asks},
		{"of another repository", of(policy.Rules{}), call(commit, repository("/other/.git", true)), event.DecisionAsk, "workspace"},
		{"nested", of(policy.Rules{}), call(commit, repository("lib/.git", false)), event.DecisionAsk, asks},
		{"made by the run", of(policy.Rules{}), call(commit, repository("new/.git", false)), event.DecisionAllow, "tools.allow"},

		{"allowed", of(policy.Rules{Git: policy.GitAllow}), call(commit, own), event.DecisionAllow, "tools.allow"},
		{"allowed outside", of(policy.Rules{Git: policy.GitAllow}), call(commit, repository("/main/.git", true)), event.DecisionAllow, "tools.allow"},
		{"allowed, but not of another", of(policy.Rules{Git: policy.GitAllow}), call(commit, repository("/other/.git", true)), event.DecisionAsk, "workspace"},
		{"allowed, but not its settings", of(policy.Rules{Git: policy.GitAllow}), call(commit, own, config), event.DecisionAsk, asks},
		{"allowed, but named as protected", of(policy.Rules{Git: policy.GitAllow, Protected: []policy.Pattern{".git"}}), call(commit, own), event.DecisionAsk, "protected_paths: .git"},
		{"denied", of(policy.Rules{Git: policy.GitDeny}), call(commit, own), event.DecisionDeny, "tools.permissions.git: deny"},
		{"denied outside", of(policy.Rules{Git: policy.GitDeny}), call(commit, repository("/main/.git", true)), event.DecisionDeny, "tools.permissions.git: deny"},

		{"allowed by a rule that names it", allows("git commit *"), call(commit, own), event.DecisionAllow, "tools.rules: allow shell.exec, command git commit *"},
		{"allowed by a rule, but not its settings", allows("git *"), call(commit, own, config), event.DecisionAsk, asks},
		{"another command is allowed", allows("git add *"), call(commit, own), event.DecisionAsk, asks},
		{"everything is allowed", allows("*"), call(commit, own), event.DecisionAsk, asks},
		{"a permission alone is none to run", policy.Rules{Git: policy.GitAllow}, call(commit, own), event.DecisionAsk, "default: side effects ask"},
	} {
		if got := c.rules.Decide(c.call); got.Decision != c.want || got.Rule != c.rule {
			t.Errorf("%s: %s by %q, want %s by %q", c.name, got.Decision, got.Rule, c.want, c.rule)
		}
	}
}
