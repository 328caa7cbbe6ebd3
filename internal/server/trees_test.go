package server_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

type treesDiff struct{ From, To, Patch, Missing string }

// The files of a loop's workspace are compared by what git sees of them, at the start and
// after each iteration; also a later loop has its own.
func TestTheTreesOfIterationsAreCompared(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	inBubble(t, refining, func(l local, dir string) {
		_, bare := l.begin("refines")
		l.until(bare, journal.Parked)
		if d := gets[treesDiff](l, http.StatusOK, http.MethodGet, bare+"/trees", ""); d.Patch != "" || !strings.Contains(d.Missing, "no git repository") {
			t.Errorf("without a repository there is %+v", d)
		}
		gets[struct{}](l, http.StatusOK, http.MethodPost, bare+"/cancel", "")
		l.until(bare, journal.Ended)
		if out, err := exec.CommandContext(l.t.Context(), "git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
			t.Skipf("%v: %s", err, out)
		}
		if out, err := exec.CommandContext(l.t.Context(), "rm", dir+"/a.txt").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, path := l.begin("refines")
		l.until(path, journal.Parked)
		trees := func() (names []string) {
			for _, p := range gets[struct{ Items []struct{ Tree string } }](l, http.StatusOK, http.MethodGet, path+"/iterations", "").Items {
				names = append(names, p.Tree)
			}
			return names
		}
		whole := gets[treesDiff](l, http.StatusOK, http.MethodGet, path+"/trees", "")
		if !strings.Contains(whole.Patch, "+++ b/a.txt\n@@ -0,0 +1,3 @@\n+one\n+zwei\n+three") || whole.From != "start" || whole.To != trees()[0] || strings.Contains(whole.Patch, "no/b.txt") {
			t.Errorf("the first iteration changed %+v", whole)
		}
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/reject", `{"callId": "review-1", "reason": "another"}`)
		l.stands(path)
		second := gets[treesDiff](l, http.StatusOK, http.MethodGet, path+"/trees?from="+trees()[0]+"&to="+trees()[1], "").Patch
		if !strings.Contains(second, "+++ b/c.txt") || strings.Contains(second, "a.txt") {
			t.Errorf("the second iteration changed %s", second)
		}
		if d := gets[treesDiff](l, http.StatusOK, http.MethodGet, path+"/trees?to=start", ""); d.Patch != "" || d.Missing != "" {
			t.Errorf("the start differs from itself: %+v", d)
		}
		l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path+"/trees?from=HEAD", "")
		l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path+"/trees?to=../start", "")
		if out, err := exec.CommandContext(l.t.Context(), "git", "-C", dir, "count-objects").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "0 objects") {
			t.Errorf("the repository has %s: %v", out, err)
		}
	})
}
