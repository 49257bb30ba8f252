// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/streams"
)

// Stream serves the streams of a command; finish is called when they are over, with what was heard of its end.
func Stream(next http.Handler, finish func(End)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w, heard := overhear(w)
		next.ServeHTTP(w, req)
		finish(heard.end())
	})
}

// overheard is a response that listens for the last word on a WebSocket's error channel: how the command ended. On a
// connection that is passed through as SPDY it hears nothing but a refusal.
type overheard struct {
	http.ResponseWriter
	heard *streams.Monitor // nil until the connection is taken over

	code int    // of an answer that is not an upgrade
	text []byte // its body's beginning
}

// overhear returns the response that a handler is given, and what is heard of it.
func overhear(w http.ResponseWriter) (http.ResponseWriter, *overheard) {
	o := &overheard{ResponseWriter: w}
	return streams.Wrap(o, func(client net.Conn) net.Conn {
		o.heard = streams.NewMonitor(remotecommand.StreamErr)
		return o.heard.Conn(client)
	}), o
}

// Unwrap is for http.ResponseController.
func (o *overheard) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (o *overheard) WriteHeader(code int) {
	o.code = code
	o.ResponseWriter.WriteHeader(code)
}

// maxText bounds what is kept of a refusal.
const maxText = 16 << 10

// Write implements http.ResponseWriter.
func (o *overheard) Write(p []byte) (int, error) {
	o.text = append(o.text, p[:min(len(p), maxText-len(o.text))]...)
	return o.ResponseWriter.Write(p)
}

// end is how the command ended, as far as it was heard.
func (o *overheard) end() End {
	switch {
	case o.heard == nil && o.code >= http.StatusBadRequest:
		return End{Reason: debugrun.Refused, Message: refusalText(o.text)}
	case o.heard == nil:
		return End{}
	}
	if refused := o.heard.Refusal(); len(refused) > 0 {
		return endOfRefused(refused)
	}
	var status metav1.Status
	if json.Unmarshal(o.heard.Last(), &status) != nil {
		return End{}
	}
	return endOf(&status)
}

// endOf reads an exit code from the status that ends a stream.
func endOf(status *metav1.Status) End {
	if status.Status == metav1.StatusSuccess {
		return End{ExitCode: new(int32)}
	}
	if status.Reason == remotecommand.NonZeroExitCodeReason && status.Details != nil {
		for _, c := range status.Details.Causes {
			if c.Type != remotecommand.ExitCodeCauseType {
				continue
			}
			if code, err := strconv.ParseInt(c.Message, 10, 32); err == nil {
				return End{ExitCode: new(int32(code))}
			}
		}
	}
	return End{Reason: string(status.Reason), Message: status.Message}
}

// endOfRefused reads the words of an answer that is no upgrade.
func endOfRefused(answer []byte) End {
	end := End{Reason: debugrun.Refused}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil)
	if err != nil {
		return end
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // as much as was kept
	end.Message = refusalText(body)
	return end
}

// refusalText is what an answer says that is no upgrade: a Status or a text.
func refusalText(body []byte) string {
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Message != "" {
		return status.Message
	}
	return strings.TrimSpace(string(body))
}
