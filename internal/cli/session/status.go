// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/exitcode"
)

// Status is what a client needs of a v1.Status: the API's types take a program too long to start.
type Status struct {
	Kind    string  `json:"kind"`
	Status  string  `json:"status"`
	Message string  `json:"message"`
	Reason  string  `json:"reason"`
	Code    int     `json:"code"`
	Details Details `json:"details"`
}

// Details are a status' details.
type Details struct {
	Causes []Cause `json:"causes"`
}

// Cause is one of a status' causes.
type Cause struct {
	Type    string `json:"reason"`
	Message string `json:"message"`
}

// Refusal is a server's no, given before there were streams.
type Refusal struct {
	Status Status
	Raw    []byte // the v1.Status as the server sent it; nil if it sent none
}

// Error is part of error.
func (r *Refusal) Error() string { return r.Status.Message }

// refusalOf makes a refusal of an answer that is no upgrade. An answer without a word in it is no refusal: what gave it
// did not understand the question.
func refusalOf(code int, body []byte) error {
	var s Status
	if json.Unmarshal(body, &s) == nil && s.Kind == "Status" && s.Status != "" {
		return &Refusal{Status: s, Raw: body}
	}
	text := strings.TrimSpace(string(bytes.ToValidUTF8(body, nil)))
	if text == "" {
		return fmt.Errorf("%w: it answered %d %s", ErrNoWebSocket, code, http.StatusText(code))
	}
	return &Refusal{Status: Status{Status: "Failure", Code: code, Message: text}}
}

// CodeOf is the exit code for an error of a session, and the error as the user should read it.
func CodeOf(err error) (int, error) {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Status.refusedCode(), err
	}
	return ExitFailed, err
}

// refusedCode is the exit code that a refusal asks for: that of a command that could not be run, or 1.
func (s Status) refusedCode() int {
	if code := s.cause(debugask.CauseExitCode); code > 0 {
		return code
	}
	return ExitRefused
}

// cause is the exit code in a cause of the status, or -1.
func (s Status) cause(kind string) int {
	for _, c := range s.Details.Causes {
		if code, err := strconv.Atoi(c.Message); c.Type == kind && err == nil && code >= 0 && code < 256 {
			return code
		}
	}
	return -1
}

// nonZeroExitCode is the reason of a status that holds an exit code.
const nonZeroExitCode = "NonZeroExitCode"

// code is what a command that ended so makes of the exit code.
func (s Status) code() (int, error) {
	switch {
	case s.Status == "Success":
		return 0, nil
	case s.Reason == nonZeroExitCode:
		if code := s.cause("ExitCode"); code >= 0 {
			return code, nil
		}
		return ExitFailed, errors.New("the server said that the command failed, and not with which exit code")
	}
	return Failure(s.Message)
}

// refusedByNode begins what a client hears of a node's refusal when its own connection with the API server is up
// already: it is reported as one that came before.
const refusedByNode = "unable to upgrade connection: "

// nodeRefusal is a node's refusal of which there are words only.
type nodeRefusal struct{ error }

// RefusedByNode reports whether an error of a session is the refusal of a node of which there are words only: the API
// server, which had agreed already, does not know either whether it is that of a node that has just come back.
func RefusedByNode(err error) bool {
	_, is := errors.AsType[nodeRefusal](err)
	return is
}

// Failure is the exit code for a failure of which there are words only, and the words as the user should read them.
func Failure(text string) (int, error) {
	message := exitcode.Plain(text)
	if refused, ok := strings.CutPrefix(message, refusedByNode); ok {
		return ExitRefused, nodeRefusal{errors.New(exitcode.Plain(refused))}
	}
	if aboutStart(text) {
		if code := exitcode.Of(text); code != 0 {
			return code, errors.New(message)
		}
	}
	if message == "" {
		message = "the session failed, and the server did not say why"
	}
	return ExitFailed, errors.New(message)
}

// aboutStart reports whether an error is about starting the command, in the runtime's words.
func aboutStart(text string) bool {
	return strings.Contains(text, "unable to start container process") ||
		strings.Contains(text, "executable file not found in $PATH")
}
