// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apiserver/pkg/server/mux"
)

const (
	openIDPath = "/.well-known/openid-configuration"
	jwksPath   = "/openid/v1/jwks"
	// openIDAge is how long others may keep what they read here.
	openIDAge = time.Hour
)

// openIDConfiguration is what others need to check service account tokens by themselves (OpenID Connect Discovery 1.0,
// as far as Kubernetes serves it).
type openIDConfiguration struct {
	Issuer        string   `json:"issuer"`
	JWKSURI       string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	SigningAlgs   []string `json:"id_token_signing_alg_values_supported"`
}

// ServeKeys serves the keys of service account tokens, for a server at url. Who may read them is the authoriser's to
// say: the cluster role system:service-account-issuer-discovery. The default issuer is the server as pods know it, and
// url need not be one that they reach: the document sends them where they have it from.
func (t *AccountTokens) ServeKeys(m *mux.PathRecorderMux, url string) error {
	uri := t.jwksURI
	switch {
	case uri != "":
	case t.issuers[0] == defaultIssuer:
		uri = defaultIssuer + jwksPath
	default:
		uri = url + jwksPath
	}
	document, err := json.Marshal(openIDConfiguration{
		Issuer: t.issuers[0], JWKSURI: uri,
		ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"},
		SigningAlgs: []string{string(jose.ES256)},
	})
	if err != nil {
		return err
	}
	set, err := t.keys()
	if err != nil {
		return err
	}
	keys, err := json.Marshal(set)
	if err != nil {
		return err
	}
	m.Handle(openIDPath, constant("application/json", document))
	m.Handle(jwksPath, constant("application/jwk-set+json", keys))
	return nil
}

// constant answers every GET with the same.
func constant(contentType string, body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET is served here", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(openIDAge.Seconds())))
		_, _ = w.Write(body) // the client has gone; there is nobody to tell
	})
}
