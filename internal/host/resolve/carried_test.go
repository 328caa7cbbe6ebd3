package resolve_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// A command may stand in an option, a variable or a setting of another one;
// rules about commands must see it there, or the line must be unclear.
func TestACommandThatAnotherOneCarriesIsSeen(t *testing.T) {
	_, ws := place(t)
	for _, line := range []string{
		"tar cf x.tar --checkpoint=1 --checkpoint-action=exec='rm x' a", "tar -I 'rm x' -xf a", "tar --to-command='rm x' -xf a", "rsync -e 'rm x' a b",
		"rsync --rsh='rm x' a b", "rg --pre 'rm x' a", "fd . -x rm", "sort --compress-program='rm x' a", "split --filter='rm x' a", "man -P 'rm x' ls",
		"go test -exec 'rm x' ./...", "git grep -O'rm x' a", "git grep --open-files-in-pager='rm x' a", "git fetch --upload-pack='rm x' a",
		"git rebase -x 'rm x' main", "git rebase --exec 'rm x' main", "git bisect run rm x", "git submodule foreach 'rm x'", "git submodule foreach --recursive 'rm x'",
		"git submodule foreach -q rm -rf x", "git rebase -x'rm x' main", "git clone -c core.sshCommand='rm x' a.test:b", "git clone --conf=core.sshCommand='rm x' a.test:b",
		"tar --to-com='rm x' -xf a", "tar --use-comp 'rm x' -xf a", "split --filt='rm x' a", "git grep --open='rm x' a",
		"git -c alias.y='!rm x' y", "git -c ALIAS.y='!rm x' y", "git -c core.pager='rm x' log", "git -c core.sshCommand='rm x' fetch", "git -C . -c diff.external='rm x' diff",
		"git -c diff.foo.textconv='rm x' diff", "git -c credential.helper='!rm x' fetch", "git -c core.fsmonitor='rm x' status",
		"PAGER='rm x' git log", "GIT_SSH_COMMAND='rm x' git fetch", "export GIT_EDITOR='rm x'; git commit", "env LESSOPEN='rm x' less a", "env -i VISUAL='rm x' crontab -e",
	} {
		got := ws.Shell(line)
		if len(got.Unclear) == 0 && !slices.ContainsFunc(got.Commands, func(c event.Command) bool { return c.Words[0] == "rm" }) {
			t.Errorf("%s: rm is not seen: %+v", line, got)
		}
	}
	for _, line := range []string{
		"git x", "git lfs x", "git -c include.path=x status", "git -c core.hooksPath=x commit", "git -c url.a.insteadOf=b fetch", "git --config-env=core.pager=X log",
		"git $x", "git -c $x log", "PAGER=$x git log", "GIT_CONFIG_COUNT=1 git log", "tar -I \"$x\" -xf a", "mapfile -C 'rm x' y", "compgen -C 'rm x'",
		"test -v 'a[$(rm x)]'", "[ 'a[$(rm x)]' -eq 1 ]", "unset 'a[`rm x`]'", "wait -p 'a[$(rm x)]'", "printf -v 'a[$(rm x)]' y", "declare -a 'y=($(rm x))'",
		"y='a[$(rm x)]'; echo $((y))", "tar -cI 'rm x' -f a b", "tar -cI'rm x' b", "rsync -ave 'rm x' a b", "git grep -nO'rm x' a",
	} {
		if got := ws.Shell(line); len(got.Unclear) == 0 || got.Risk == event.RiskRead {
			t.Errorf("%s: it is taken for clear: %+v", line, got)
		}
	}
	for _, line := range []string{
		"git -c user.name=x commit -m y", "git -c color.ui=never diff", "git stash list", "git bisect good", "git clean -fdx", "printf '%s' 'use `x`'",
		"git commit -m 'use `x` and $(y)'", "PAGER=cat git log", "git -c core.pager=cat log", "tar -xf a.tar", "go vet ./...", "FOO='a b' ./x", "test -f a",
	} {
		if got := ws.Shell(line); len(got.Unclear) > 0 {
			t.Errorf("%s: it is unclear: %q", line, got.Unclear)
		}
	}
}

func TestAFileBehindAnOptionInTheSameWordIsSeen(t *testing.T) {
	_, ws := place(t)
	for _, line := range []string{
		"curl -o git/config http://a.test", "curl -sSLo git/config http://a.test", "curl -sSLogit/config http://a.test", "curl --output=git/config http://a.test",
		"curl -D git/config http://a.test", "curl -cgit/config http://a.test", "wget -O git/config http://a.test", "wget -qOgit/config http://a.test",
		"wget --output-document=git/config http://a.test", "wget -nv -o git/config http://a.test", "sort -ogit/config a", "sort -uogit/config a", "x -ofgit/config",
	} {
		if got := marks(ws.Shell(line)); !slices.Contains(got, "w:.git/config") && !slices.Contains(got, "g:.git/config") {
			t.Errorf("%s: it touches %q", line, got)
		}
	}
	for _, line := range []string{"wget -c http://a.test/x", "wget -qO- http://a.test/x", "curl -sSL http://a.test/x", "curl -o- http://a.test/x"} {
		if f := ws.Shell(line); slices.ContainsFunc(f.Paths, func(p event.PathUse) bool { return p.Write }) {
			t.Errorf("%s: it writes %q", line, marks(f))
		}
	}
}

func TestAMachineThatAnOptionLeadsToIsNotTakenAsKnown(t *testing.T) {
	_, ws := place(t)
	for _, line := range []string{
		"curl http://ev%69l.test/", "curl --resolve ok.test:80:192.0.2.1 http://ok.test", "curl --connect-to ::b.test: http://a.test", "curl -K conf", "curl -sK conf",
		"curl --config conf", "curl --unix-socket /run/x http://a.test", "wget -i list", "wget --input-file=list", "wget -e http_proxy=b.test http://a.test",
	} {
		if f := ws.Shell(line); len(f.Unclear) == 0 {
			t.Errorf("%s: which machine it talks to is taken as known: %+v", line, f)
		}
	}
	for line, want := range map[string]string{"ping b.test": "b.test", "dig x.b.test": "x.b.test", "nslookup b.test": "b.test", "curl -x http://p.test http://a.test": "p.test a.test"} {
		if f := ws.Shell(line); strings.Join(f.Hosts, " ") != want || f.Risk != event.RiskSend {
			t.Errorf("%s: %s to %q", line, f.Risk, f.Hosts)
		}
	}
}
