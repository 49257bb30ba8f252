// SPDX-License-Identifier: Apache-2.0

package kubelettest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	serverremote "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"
)

// V5 is the newest protocol.
const V5 = "v5.channel.k8s.io"

// ServeV5 is what a node does that speaks the protocol itself.
func ServeV5(w http.ResponseWriter, r *http.Request, o *serverremote.Options,
	run func(in io.Reader, out, stderr io.WriteCloser, resize <-chan serverremote.TerminalSize) error) {
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{V5: {Binary: true,
		Channels: []wsstream.ChannelType{
			wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel,
			wsstream.ReadChannel,
		}}})
	_, channels, err := conn.Open(w, r)
	if err != nil {
		return
	}
	defer conn.Close()
	channels[1].Write(nil)
	sizes := make(chan serverremote.TerminalSize, 1)
	if o.TTY {
		var size serverremote.TerminalSize
		if json.NewDecoder(channels[4]).Decode(&size) == nil {
			sizes <- size
		}
	}
	status := `{"metadata":{},"status":"Success"}`
	var in io.Reader
	if o.Stdin {
		in = channels[0]
	}
	if err := run(in, channels[1], channels[2], sizes); err != nil {
		status = fmt.Sprintf(`{"status":"Failure","reason":"InternalError","message":%q}`, err)
		if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
			status = fmt.Sprintf(`{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"%d"}]}}`, exit.Code)
		}
	}
	channels[3].Write([]byte(status))
}

func (k *Kubelet) execV5(w http.ResponseWriter, r *http.Request, o *serverremote.Options) {
	ServeV5(w, r, o, func(in io.Reader, out, stderr io.WriteCloser, resize <-chan serverremote.TerminalSize) error {
		return k.ExecInContainer(r.Context(), "", "", r.PathValue("container"), r.URL.Query()["command"], in, out,
			stderr, o.TTY, resize, 0)
	})
}

// ServeRun is what a node does once the run has started.
func (k *Kubelet) ServeRun(w http.ResponseWriter, r *http.Request) {
	opts := &serverremote.Options{Stdin: true, Stdout: true}
	run := func(in io.Reader, out io.Writer) error {
		fmt.Fprintf(out, "run %s of %s/%s: ", r.PathValue("run"), r.PathValue("uid"), r.PathValue("container"))
		_, err := io.Copy(out, in)
		return err
	}
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		ServeV5(w, r, opts, func(in io.Reader, out, _ io.WriteCloser, _ <-chan serverremote.TerminalSize) error {
			return run(in, out)
		})
		return
	}
	serverremote.ServeAttach(w, r, attaches(run), "", "", "", opts, time.Minute, time.Minute,
		serverremote.SupportedStreamingProtocols)
}

// attaches is a container of a node.
type attaches func(in io.Reader, out io.Writer) error

// AttachContainer is part of serverremote.Attacher.
func (a attaches) AttachContainer(_ context.Context, _, _, _ string, in io.Reader, out, _ io.WriteCloser, _ bool,
	_ <-chan serverremote.TerminalSize) error {
	return a(in, out)
}
