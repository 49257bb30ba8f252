// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
)

// answer is what is read of an answer to a client: tokens, or an error of RFC 6749, 5.2.
type answer struct {
	ID          string `json:"id_token"`
	Refresh     string `json:"refresh_token"`
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// post asks the provider as the client that the page is, at one of its endpoints. A status other than 200 is an
// error, an [oauth2.RetrieveError].
func (p *Provider) post(ctx context.Context, about document, address string, form url.Values) (answer, error) {
	basic := p.o.Secret != "" && about.inHeader()
	if !basic {
		form.Set("client_id", p.o.ClientID)
		if p.o.Secret != "" {
			form.Set("client_secret", p.o.Secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, err
	}
	if basic { // both are escaped as in a form before they are joined (RFC 6749, 2.3.1)
		req.SetBasicAuth(url.QueryEscape(p.o.ClientID), url.QueryEscape(p.o.Secret))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	var a answer
	odd := json.Unmarshal(body, &a) // a page in place of JSON is judged by the status
	if resp.StatusCode != http.StatusOK || a.Error != "" {
		return answer{}, &oauth2.RetrieveError{Response: resp, ErrorCode: a.Error, ErrorDescription: a.Description}
	}
	if odd != nil && address == about.Token {
		return answer{}, p.odd(errors.New("what it answers with a token is not JSON"))
	}
	return a, nil
}
