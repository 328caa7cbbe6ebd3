package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
)

// refining has a loop that a person reviews, whose iterations write a file.
var refining = map[string]string{
	"refines.yaml": "identity: {name: refines}\nmodel_policy: {primary: {model: scripted/refines.script.yaml}}\ntools: {allow: [fs.write, fs.edit], rules: [{deny: fs.write, path: 'no/**'}]}\n" +
		"loop: {loopEnabled: true, maxIterations: 3, loopCriteria: {type: manual}, on_reject: continue_with_feedback}\n",
	"refines.script.yaml": "- for: refines\n  tool_calls: [{name: fs.write, arguments: {path: a.txt, content: \"one\\ntwo\\nthree\\n\"}}, {name: fs.write, arguments: {path: no/b.txt, content: x}}]\n" +
		"- for: refines\n  tool_calls: [{name: fs.edit, arguments: {path: a.txt, old_string: two, new_string: zwei}}]\n- for: refines\n  text: \"first\\nsame\"\n" +
		"- for: refines\n  tool_calls: [{name: fs.write, arguments: {path: c.txt, content: c}}]\n- for: refines\n  text: \"second\\nsame\"\n",
}

// fileLines are the files of a run's changes, each with its calls.
func (l local) fileLines(path string) (lines []string) {
	l.t.Helper()
	for _, f := range gets[struct {
		Items []struct {
			Path  string
			Calls []struct {
				State, Why, Diff string
				Whole            bool
			}
		}
	}](l, http.StatusOK, http.MethodGet, path+"/changes", "").Items {
		for _, c := range f.Calls {
			lines = append(lines, fmt.Sprintf("%s %s %t %s%s", f.Path, c.State, c.Whole, c.Why, strings.ReplaceAll(c.Diff, "\n", "/")))
		}
	}
	return lines
}

// Each file has the calls that wrote it, with the difference that they made to what the
// run knew of it; what was refused is marked.
func TestChangesNameTheCallsThatWroteEachFile(t *testing.T) {
	inBubble(t, refining, func(l local, _ string) {
		_, path := l.begin("refines")
		l.until(path, journal.Parked)
		if diff := cmp.Diff([]string{
			"a.txt done true @@ -0,0 +1,3 @@/+one/+two/+three/",
			"a.txt done false @@ -1,3 +1,3 @@/ one/-two/+zwei/ three/",
			"no/b.txt denied true not permitted@@ -0,0 +1,1 @@/+x/\\ No newline at end of file/",
		}, l.fileLines(path)); diff != "" {
			t.Errorf("of the loop (-want +got):\n%s", diff)
		}
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/reject", `{"callId": "review-1", "reason": "another"}`)
		l.stands(path)
		type pass struct {
			Iteration, MaxIterations int
			Run, Exit, Output        string
			Judged                   []struct {
				By, Said string
				Holds    *bool
			}
		}
		all := gets[struct{ Items []pass }](l, http.StatusOK, http.MethodGet, path+"/iterations", "").Items
		if len(all) != 2 || all[0].Output != "first\nsame" || all[1].Output != "second\nsame" || all[1].MaxIterations != 3 || all[0].Exit != "final_answer" {
			t.Fatalf("the iterations are %+v of %+v", all, l.stands(path))
		}
		if j := all[0].Judged; len(j) != 1 || j[0].By != "review" || j[0].Holds == nil || *j[0].Holds || !strings.Contains(j[0].Said, "another") || len(all[1].Judged) != 0 {
			t.Errorf("they were judged %+v and %+v", j, all[1].Judged)
		}
		if got := l.fileLines("/v1/runs/" + all[1].Run); len(got) != 1 || !strings.HasPrefix(got[0], "c.txt done") {
			t.Errorf("the second iteration changed %v", got)
		}
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/approve", `{"callId": "review-2"}`)
		l.until(path, journal.Ended)
		if j := gets[struct{ Items []pass }](l, http.StatusOK, http.MethodGet, path+"/iterations", "").Items[1].Judged; len(j) != 1 || !*j[0].Holds {
			t.Errorf("the last one was judged %+v", j)
		}
	})
}

// A command's files are those that its line names, without a difference.
func TestFilesOfCommandsAreChangesToo(t *testing.T) {
	inBubble(t, doing, func(l local, _ string) {
		_, path := l.begin("asks")
		l.until(path, journal.Ended)
		got := l.fileLines(path)
		if len(got) != 4 || got[3] != "third.txt done false " || !strings.HasPrefix(got[1], "no/a.txt denied") || !strings.HasPrefix(got[2], "second.txt done") {
			t.Errorf("the changes are %q", got)
		}
	})
}
