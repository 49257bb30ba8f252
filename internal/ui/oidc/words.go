// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/oauth2"
)

// mostWords bounds what is told of a provider's words.
const mostWords = 300

// Problem is why somebody could not be signed in, in words for them.
type Problem struct {
	// Refused: the provider has said that what was shown to it is no good and will not be: only signing in anew helps.
	// Else another try may help, for it was not to be had, is busy, or says what nobody understands.
	Refused bool
	Words   string
}

// Error implements error.
func (p *Problem) Error() string { return p.Words }

// Answered is the provider's refusal that a browser comes back with: error and error_description of RFC 6749.
func Answered(issuer, code, description string) *Problem {
	known := map[string]string{
		"access_denied":           "the sign-in was refused or called off",
		"login_required":          "it wants you to sign in there first",
		"invalid_scope":           "it does not give what the page asks for",
		"unauthorized_client":     "this client ID may not sign people in: see the client's settings at the provider",
		"invalid_client":          "it does not know this client ID, or wants its secret: see --oidc-client-id and --ui-oidc-client-secret-file",
		"invalid_grant":           "the code or token has been used, or is too old: sign in again",
		"server_error":            "it has a fault",
		"temporarily_unavailable": "it is busy: try again later",
	}
	out := Name(issuer) + " answers " + line(code)
	if words := known[code]; words != "" {
		out = fmt.Sprintf("%s: %s (%s)", Name(issuer), words, code)
	}
	if said := line(description); said != "" {
		out += `. It says: "` + said + `"`
	}
	return &Problem{Refused: slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client"}, code),
		Words: out}
}

// problemOf tells what came of a question to a provider.
func problemOf(issuer string, err error) *Problem {
	var own *Problem
	var answer *oauth2.RetrieveError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.As(err, &answer):
		return answered(issuer, answer)
	}
	return &Problem{false, fmt.Sprintf("the identity provider %s cannot be asked: %s", Name(issuer), line(err.Error()))}
}

// answered tells of an answer other than tokens.
func answered(issuer string, answer *oauth2.RetrieveError) *Problem {
	status := http.StatusBadRequest
	out := Answered(issuer, answer.ErrorCode, answer.ErrorDescription)
	if answer.Response != nil {
		status = answer.Response.StatusCode
		if answer.ErrorCode == "" {
			out.Words = fmt.Sprintf("%s answers %s when it is asked about a token", Name(issuer),
				line(answer.Response.Status))
		}
	}
	// Whatever the body says, these are of the moment, or of somebody on the way.
	if status != http.StatusOK && status < http.StatusBadRequest || status >= http.StatusInternalServerError ||
		status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
		out.Refused = false
	}
	return out
}

// line is text as one line that draws what it says, cut to what somebody reads.
func line(text string) string {
	text = strings.Join(strings.FieldsFunc(text,
		func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	runes := []rune(text)
	if len(runes) > mostWords {
		return string(runes[:mostWords]) + " …"
	}
	return text
}
