package server_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rows: RON-47..50
//
// The reference client starts, watches, decides and stops loops over each transport.
func TestTheReferenceClientSpeaksToTheServer(t *testing.T) {
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("part of the long suite: PAWL_LONG=1")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm")
	}
	dir := t.TempDir()
	script, err := os.ReadFile(filepath.Join("testdata", "socketio", "client.cjs"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "client.cjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "socket.io-client@4.8.4")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("socket.io-client cannot be installed: %v\n%s", err, out)
	}
	for transports, speaks := range map[string]string{"polling": "polling", "websocket": "websocket", "polling,websocket": "websocket"} {
		t.Run(transports, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			s, _ := newServer(t, looping)
			web := httptest.NewServer(conforming(t, s))
			defer web.Close()
			node := exec.CommandContext(t.Context(), "node", "client.cjs", web.URL, transports)
			node.Dir = dir
			out, err := node.CombinedOutput()
			want := "speaks " + speaks + `
iteration reviewed 1/4
info Loop iteration 1: the first try 
action_required Loop iteration 1 requires manual approval approve,reject
iteration reviewed 2/4
info Loop iteration 2: the first try 
action_required Loop iteration 2 requires manual approval approve,reject
info Loop completed after 2 iterations 
status reviewed idle
error off LOOP_OFF the loop of the agent "off" is not enabled
info Loop stopped after 0 iterations 
status slow idle
disconnected io client disconnect true
`
			if diff := cmp.Diff(want, string(out)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
