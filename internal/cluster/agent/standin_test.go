// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

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
	pod := ask.Evidence
	if ask.Session != nil {
		pod = &ask.Session.Pod
	}
	if refusal := judge(*pod); refusal != nil {
		_ = reports.Encode(talk.Report{Refused: refusal})
		return 0
	}
	if pod.Name == "crash" || ask.Session == nil {
		return 1
	}
	_ = reports.Encode(talk.Report{Ready: &talk.Ready{Notes: []string{"a\r\nnote"}}})
	if ask.Session.TTY {
		terminal(gone)
	} else if path := ask.Session.Command[0]; path != "sh" {
		<-gone
		_ = os.WriteFile(path, nil, 0o600)
	} else {
		_, _ = io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintln(os.Stderr, "wherry: done")
	}
	_ = reports.Encode(talk.Report{Ended: &talk.Ended{Code: 7}})
	return 0
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
	tell := func() {
		width, height, err := term.GetSize(0)
		fmt.Printf("%dx%d %v\r\n", width, height, err)
	}
	tell() // it may have changed before
	typed := make(chan byte)
	go func() {
		var b [1]byte
		_, _ = os.Stdin.Read(b[:])
		typed <- b[0]
	}()
	for {
		select {
		case <-changed:
			tell()
		case b := <-typed:
			fmt.Printf("got %d\r\n", b)
			return
		case <-gone:
			return
		}
	}
}
