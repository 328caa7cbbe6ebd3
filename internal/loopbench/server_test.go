package loopbench

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/mcptest"
)

// serverEnv makes the test binary a model server: in a process of its own, so
// that its CPU time is not counted as the loop's.
const serverEnv = "PAWL_LOOPBENCH_SERVER"

// shim makes the test binary what supervises commands, too.
var shim sandbox.Shim

func TestMain(m *testing.M) {
	shim = sandbox.Main()
	if os.Getenv(mcpEnv) != "" && len(os.Args) == 1 {
		mcptest.Main()
		return
	}
	if os.Getenv(serverEnv) != "" {
		serve()
		return
	}
	if events, err := strconv.ParseInt(os.Getenv(readersEnv), 10, 64); err == nil {
		read(events)
		return
	}
	if n, err := strconv.Atoi(os.Getenv(holderEnv)); err == nil {
		hold(n)
		return
	}
	os.Exit(m.Run())
}

func serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	go func() {
		// The parent's end of stdin closes when it is gone.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_ = http.Serve(l, new(scripts))
}

func sse(w io.Writer, name, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data) }

// startServer runs the server process and returns its base URL.
func startServer(b testing.TB) string {
	b.Helper()
	return serverOf(b, exec.Command(os.Args[0]))
}

// serverOf runs the server process by a command.
func serverOf(b testing.TB, cmd *exec.Cmd) string {
	b.Helper()
	cmd.Env = append(cmd.Environ(), serverEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(addr)
}
