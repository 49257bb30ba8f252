// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
)

// status is a metav1.Status, of which the package would cost more memory than all else here.
type status struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   struct{} `json:"metadata"`
	Status     string   `json:"status"`
	Message    string   `json:"message,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	Details    *details `json:"details,omitempty"`
	Code       int      `json:"code,omitempty"`
}

type details struct {
	Causes []cause `json:"causes,omitempty"`
}

type cause struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func newStatus(s status) status {
	s.Kind, s.APIVersion = "Status", "v1"
	return s
}

// refuse answers with a refusal.
func refuse(w http.ResponseWriter, r talk.Refusal) {
	answer(w, r.Code, newStatus(status{Status: "Failure", Message: r.Message, Reason: r.Reason, Code: r.Code}))
}

// badRequest answers a request that cannot be read or granted.
func badRequest(w http.ResponseWriter, format string, args ...any) {
	refuse(w, talk.Refusal{Code: http.StatusBadRequest, Reason: "BadRequest", Message: fmt.Sprintf(format, args...)})
}

// answer writes JSON.
func answer(w http.ResponseWriter, code int, what any) {
	text, err := json.Marshal(what)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte("null")
	}
	answerText(w, code, text)
}

// answerText writes JSON, the whole of it at once: what there is to do after it is nothing to the client. One that is
// gone does not hear it.
func answerText(w http.ResponseWriter, code int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write(text)
	_ = http.NewResponseController(w).Flush()
}

// endStatus is what the status channel says of a session's end, in the words that clients of exec know. (Pure.)
func endStatus(e *talk.Ended) status {
	switch {
	case e == nil:
		return newStatus(status{Status: "Failure", Reason: "InternalError", Code: http.StatusInternalServerError,
			Message: "the session's process on the node has ended unexpectedly"})
	case e.Error != "":
		return newStatus(status{Status: "Failure", Reason: "InternalError", Code: http.StatusInternalServerError,
			Message: e.Error})
	case e.Code == 0:
		return newStatus(status{Status: "Success"})
	}
	code := strconv.Itoa(e.Code)
	return newStatus(status{Status: "Failure", Reason: "NonZeroExitCode",
		Message: "command terminated with non-zero exit code: exit status " + code,
		Details: &details{Causes: []cause{{Reason: "ExitCode", Message: code}}}})
}
