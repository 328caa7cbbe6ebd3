package shell_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

func TestACommandSaysWhetherItCanSend(t *testing.T) {
	set, err := tool.NewSet(shell.New(shell.Options{Dir: t.TempDir()}))
	if err != nil {
		t.Fatal(err)
	}
	const (
		quiet = iota // changes nothing
		might        // may send, and is not known to
		talks        // is known to talk to another machine
	)
	for command, want := range map[string]int{
		"ls -l": quiet, "cat a | grep b": quiet, "git status": might,
		"go test ./...": might, "touch a": might, "./build.sh": might, "eval $x": might, "git commit -m 'see https://example.com'": might,
		"curl https://example.com": talks, "ls; wget example.com": talks, "git clone https://example.com/x": talks, "ssh host ls": talks,
		"/usr/bin/curl $URL": talks, "sudo rm -rf x; curl $URL": talks, "git push": talks, "git stash push": might,
		"git -C x fetch && chmod +x y": talks, "git --no-pager -c color.ui=never pull; chmod +x y": talks, "sudo -u me git -C x pull": talks,
		"sudo curl -s example.com": talks, "ls | xargs -n1 /usr/bin/wget": talks, "busybox wget example.com": talks, "echo x > /dev/tcp/example.com/80": talks,
	} {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		got := set.Resolve("c", llm.ToolCall{Name: "shell.exec", Args: args}).Labels
		if expect := (event.Labels{Private: true, Outgoing: want != quiet, Untrusted: want == talks}); got != expect {
			t.Errorf("%s: %+v, want %+v", command, got, expect)
		}
	}
}

func TestACommandInASandboxWithoutANetworkCannotSend(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		set, err := tool.NewSet(newShell(shell.Options{Dir: t.TempDir()}))
		if err != nil {
			t.Fatal(err)
		}
		got := set.Resolve("c", llm.ToolCall{Name: "shell.exec", Args: json.RawMessage(`{"command":"curl https://example.com"}`)}).Labels
		want := event.Labels{Private: true}
		if strings.HasSuffix(t.Name(), "/"+string(sandbox.None)) || strings.HasSuffix(t.Name(), "/bare") {
			want = event.Labels{Private: true, Untrusted: true, Outgoing: true}
		}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// Which calls run in the sandbox is decided after the labels are known, so that
// none is taken for one that does: an outgoing command beside the sandbox would
// pass the rule of two unseen.
func TestACommandBesideASandboxOnDemandCanSend(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		set, err := tool.NewSet(newShell(shell.Options{Dir: t.TempDir(), OnDemand: true}))
		if err != nil {
			t.Fatal(err)
		}
		got := set.Resolve("c", llm.ToolCall{Name: "shell.exec", Args: json.RawMessage(`{"command":"curl https://example.com"}`)}).Labels
		if want := (event.Labels{Private: true, Untrusted: true, Outgoing: true}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// Where no sandbox is certain, policy has to know, whichever call a rule puts
// into one.
func TestACallSaysThatNoSandboxHoldsItsPrograms(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		for _, onDemand := range []bool{false, true} {
			set, err := tool.NewSet(newShell(shell.Options{Dir: t.TempDir(), OnDemand: onDemand}))
			if err != nil {
				t.Fatal(err)
			}
			got := set.Resolve("c", llm.ToolCall{Name: "shell.exec", Args: json.RawMessage(`{"command":"make"}`)}).Facts.Unsandboxed
			tier := path.Base(t.Name())
			if want := onDemand || tier == "none" || tier == "bare"; got != want {
				t.Errorf("on demand %v: unsandboxed is %v, want %v", onDemand, got, want)
			}
		}
	})
}

// In a home directory the model may write what makes git run a program.
func TestGitWithUserConfigThatRunsProgramsIsNotReadOnly(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\tfsmonitor = sh x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for variable, looks := range map[string]bool{"HOME=" + home: false, "HOME=/elsewhere": true} {
		sh := shell.New(shell.Options{Dir: home, Env: []string{variable}, Inside: true})
		if got := sh.Facts(json.RawMessage(`{"command":"git status"}`)).Commands[0].ReadOnly; got != looks {
			t.Errorf("%s: git status looks: %t", variable, got)
		}
	}
}
