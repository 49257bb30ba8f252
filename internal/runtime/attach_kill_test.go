// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Environment that makes a test binary run TestTapChild: on this data folder, with a new container that counts so far with such
// pauses, or with the one that is there.
const (
	tapChildEnv   = "WHERRY_RUNTIME_TEST_TAP_DATA"
	tapCommandEnv = "WHERRY_RUNTIME_TEST_TAP_COMMAND"
)

// TestTapChild is the body of other processes: a runtime that runs, or takes up, a container, and has a client attached to it which
// shows every line it gets.
func TestTapChild(t *testing.T) {
	dir := os.Getenv(tapChildEnv)
	if dir == "" {
		t.Skip("only as a process of other tests")
	}
	r := start(t, dir)
	id := ""
	if command := os.Getenv(tapCommandEnv); command != "" {
		importBox(t, r)
		p := runPod(t, r)
		ordinary := strings.HasSuffix(command, " main")
		id = p.create("counter", strings.Fields(command), func(c *criapi.ContainerConfig) {
			c.Tty = strings.HasSuffix(command, " tty")
			if ordinary {
				c.Labels = nil
			}
		})
		if ordinary {
			p.start(id)
		} else {
			go p.start(id)
		}
		fmt.Printf("\nREADY %s %s\n", p.id, id)
	} else {
		list, err := criapi.NewRuntimeServiceClient(r.Conn()).ListContainers(t.Context(), &criapi.ListContainersRequest{})
		if err != nil || len(list.Containers) != 1 {
			t.Fatalf("%v containers, %v", list, err)
		}
		id = list.Containers[0].Id
		fmt.Printf("\nREADY %s %s\n", list.Containers[0].PodSandboxId, id)
	}
	if err := r.Attach(t.Context(), id, AttachOptions{Stdout: os.Stdout, Stderr: os.Stdout}); err != nil {
		t.Error(err)
	}
	fmt.Printf("DONE\n")
	_, _ = io.ReadAll(os.Stdin)
}

// tapChild starts a process with TestTapChild and returns what it shows.
func tapChild(t *testing.T, dir, command string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestTapChild$", "-test.v")
	cmd.Env = append(os.Environ(), tapChildEnv+"="+dir, tapCommandEnv+"="+command)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // ends with this process
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the other process did not get ready: %v", err)
		}
		if strings.HasPrefix(line, "READY ") {
			return cmd, lines
		}
	}
}

// EC-16, EC-15: a server that is killed again and again amid the output of a container costs nobody a line: a client that attaches
// anew sees every line once and in order, from the first one, and so does the log, that of an ordinary container, too.
func TestAttachSurvivesKills(t *testing.T) {
	for name, command := range map[string]string{
		"both outputs":                    "count 15000 150 both",
		"a terminal":                      "count 15000 150 tty",
		"as fast as the container can go": "count 400000 0",
		"an ordinary container":           "count 400000 0 both main",
	} {
		t.Run(name, func(t *testing.T) {
			dir := dataFolder(t)
			lines, _ := strconv.Atoi(strings.Fields(command)[1])
			what := command
			for range 4 {
				cmd, out := tapChild(t, dir, what)
				what = ""
				// Amid the output: after so many lines, not after some time.
				for n := rand.IntN(2500); n > 0; n-- {
					line, err := out.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					if line == "DONE\n" {
						t.Fatal("the container ended before the server could be killed")
					}
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait()
			}
			r := start(t, dir)
			list, err := criapi.NewRuntimeServiceClient(r.Conn()).ListContainers(t.Context(), &criapi.ListContainersRequest{})
			if err != nil || len(list.Containers) != 1 {
				t.Fatalf("%v containers, %v", list, err)
			}
			c := list.Containers[0]
			p := &pod{t: t, r: r, cri: criapi.NewRuntimeServiceClient(r.Conn()), id: c.PodSandboxId}
			logs, err := filepath.Glob(filepath.Join(dir, "logs", "*"))
			if err != nil || len(logs) != 1 {
				t.Fatal(logs, err)
			}
			p.sandbox = &criapi.PodSandboxConfig{LogDirectory: logs[0]}
			s := attach(t, r, c.Id, false, false)
			s.ended()
			text, first := s.out.String(), 1
			if strings.Contains(command, "both") {
				text = interleave(text, s.err.String())
			}
			if strings.HasSuffix(command, " 0") {
				_, text, _ = strings.Cut(text, "\n") // the ring begins within a line
				first = 0
			}
			if !strings.HasSuffix(command, " main") { // of which only the log is kept
				counted(t, "the client", strings.ReplaceAll(text, "\r\n", "\n"), first, lines)
			}
			log := logOf(t, p, "counter")
			if strings.Contains(command, "both") {
				log = interleave(split(log, 0), split(log, 1))
			}
			counted(t, "the log", log, 1, lines)
			p.stopTaken()
		})
	}
}

// interleave puts the odd lines of one text and the even ones of another into one.
func interleave(even, odd string) string {
	a, b := strings.SplitAfter(odd, "\n"), strings.SplitAfter(even, "\n")
	var out strings.Builder
	for i := range max(len(a), len(b)) {
		if i < len(a) {
			out.WriteString(a[i])
		}
		if i < len(b) {
			out.WriteString(b[i])
		}
	}
	return out.String()
}

// split takes the lines with even (0) or odd (1) numbers out of a text.
func split(text string, rest int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		var n int
		if _, err := fmt.Sscanf(line, "line %d ", &n); err == nil && n%2 == rest {
			out.WriteString(line)
		}
	}
	return out.String()
}
