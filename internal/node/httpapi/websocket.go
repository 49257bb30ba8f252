// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/wherryproject/wherry/internal/streams"
)

// serveWebSocket joins a WebSocket client with a process. doing says what failed, if it fails: "error attaching to
// container". When the connection of its writer is lost, the request's context must end. A client that does not
// read holds up the writes of the process: nothing is gathered for it. (The library has a server for this protocol in
// its translator to SPDY only.)
func serveWebSocket(w http.ResponseWriter, r *http.Request, o *remotecommand.Options, doing string, run process) {
	socket, err := streams.Accept(w, r, streamIdle)
	if err != nil {
		return // it has answered
	}
	heard := map[byte]io.WriteCloser{}
	var in io.Reader
	if o.Stdin {
		held := streams.NewInbox()
		defer held.Stop()
		in, heard[streams.Stdin] = held, held
	}
	sizes := make(chan remotecommand.TerminalSize, 1)
	if o.TTY {
		from, to := io.Pipe()
		heard[streams.Resize] = to
		go readSizes(from, sizes)
	} else {
		close(sizes)
	}
	go func() {
		_ = socket.Hear(heard) // the client is gone, or cannot be understood
		socket.Fail()
	}()

	var out, errOut io.WriteCloser
	first := streams.Status
	if o.Stderr {
		first, errOut = streams.Stderr, socket.Channel(streams.Stderr)
	}
	if o.Stdout {
		first, out = streams.Stdout, socket.Channel(streams.Stdout)
	}
	_, _ = socket.Channel(first).Write(nil) // tells the client that it is connected
	err = run(r.Context(), in, out, errOut, sizes)
	if held, ok := in.(*streams.Inbox); ok {
		held.Stop()
	}
	text, err := json.Marshal(endOf(err, doing))
	if err != nil {
		socket.Fail()
		return
	}
	socket.End(streams.Status, text)
}

// endOf is what the error channel says of an end, in the words that clients hear from the library's servers. (Pure.)
func endOf(err error, doing string) metav1.Status {
	if err == nil {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	if exit, ok := err.(utilexec.ExitError); ok && exit.Exited() {
		return metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Message: "command terminated with non-zero exit code: " + exit.Error(),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType,
				Message: strconv.Itoa(exit.ExitStatus())}}}}
	}
	return apierrors.NewInternalError(fmt.Errorf("%s: %w", doing, err)).ErrStatus
}

// readSizes hands on the sizes of the client's window until there are no more. Of those that nobody took in time it
// keeps the last, so that a process without a terminal does not hold up what else the client says.
func readSizes(from io.Reader, to chan remotecommand.TerminalSize) {
	defer close(to)
	for d := json.NewDecoder(from); ; {
		var size remotecommand.TerminalSize
		if d.Decode(&size) != nil {
			_, _ = io.Copy(io.Discard, from) // what is no size holds up nothing either
			return
		}
		select {
		case <-to:
		default:
		}
		to <- size
	}
}
