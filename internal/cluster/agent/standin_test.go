// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// stand is the stand-in of a session's process, which knows one pod.
func stand() int {
	from := bufio.NewReader(os.NewFile(talk.AskFD, "ask"))
	reports := json.NewEncoder(os.NewFile(talk.ReportFD, "report"))
	line, err := from.ReadBytes('\n')
	var ask talk.Ask
	if err != nil || json.Unmarshal(line, &ask) != nil {
		return 1
	}
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, from)
		close(gone)
	}()
	if ask.Runtime {
		return lookFor(ask.CRISocket, reports)
	}
	if ask.Kit {
		return showKit(reports)
	}
	pod := ask.Evidence
	if ask.Session != nil {
		pod = &ask.Session.Pod
	}
	if refusal := judge(*pod); refusal != nil {
		_ = reports.Encode(talk.Report{Refused: refusal})
		return 0
	}
	switch {
	case pod.Name == "crash":
		return 1
	case ask.Session == nil:
		return report(*pod, reports)
	}
	_ = reports.Encode(talk.Report{Ready: &talk.Ready{Notes: []string{"a\r\nnote"}}})
	act(ask.Session, gone)
	_ = reports.Encode(talk.Report{Ended: &talk.Ended{Code: 7}})
	return 0
}

// report says what is known of a pod: of one, more than is heard.
func report(pod wire.Pod, reports *json.Encoder) int {
	text := `{"containers":[{"name":"<main>"}]}`
	if pod.Name == "long" {
		text = `"` + strings.Repeat("x", talk.MostReport) + `"`
	}
	if reports.Encode(talk.Report{Evidence: json.RawMessage(text)}) != nil {
		return 1
	}
	return 0
}

// act is what a session does, by the first word of its command. A second one is a socket at which its end is told.
func act(s *wire.Session, gone <-chan struct{}) {
	switch s.Command[0] {
	case "terminal":
		terminal(gone)
	case "flood":
		flood(gone)
	case "deaf":
		time.Sleep(time.Hour)
	case "wait":
		<-gone
	default:
		_, _ = io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintln(os.Stderr, "wherry: done")
	}
	if len(s.Command) > 1 {
		if conn, err := net.Dial("unix", s.Command[1]); err == nil {
			_ = conn.Close()
		}
	}
}

// flood writes more than is read until its client is gone, and then more than a terminal holds.
func flood(gone <-chan struct{}) {
	text := strings.Repeat("flood\r\n", 8<<10)
	for {
		select {
		case <-gone:
			fmt.Print(text)
			return
		default:
			fmt.Print(text)
		}
	}
}

// lookFor is as if at one place alone a runtime answered.
func lookFor(socket string, reports *json.Encoder) int {
	switch socket {
	case "there":
		_ = reports.Encode(talk.Report{Ready: &talk.Ready{}})
	case "none":
		_ = reports.Encode(talk.Report{Refused: &talk.Refusal{Code: 500, Message: "there is no socket none"}})
	}
	return 0
}

func judge(pod wire.Pod) *talk.Refusal {
	switch {
	case pod.Name == "away":
		return &talk.Refusal{Code: 404, Reason: wire.ReasonPodNotOnNode, Message: "it is not here"}
	case pod.UID != "u":
		return &talk.Refusal{Code: 409, Reason: wire.ReasonPodNotOnNode, Message: "it is another"}
	}
	return nil
}

// terminal says how large the window is when that changes, and the first byte that is typed.
func terminal(gone <-chan struct{}) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	report := func() {
		width, height, err := term.GetSize(0)
		fmt.Printf("%dx%d %v\r\n", width, height, err)
	}
	report() // it may have changed before
	typed := make(chan byte)
	go func() {
		var b [1]byte
		_, _ = os.Stdin.Read(b[:])
		typed <- b[0]
	}()
	for {
		select {
		case <-changed:
			report()
		case b := <-typed:
			fmt.Printf("got %d\r\n", b)
			return
		case <-gone:
			return
		}
	}
}
