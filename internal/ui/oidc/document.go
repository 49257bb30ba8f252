// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// document is what a provider tells of itself at /.well-known/openid-configuration.
type document struct {
	Issuer     string   `json:"issuer"`
	Authorize  string   `json:"authorization_endpoint"`
	Token      string   `json:"token_endpoint"`
	Revocation string   `json:"revocation_endpoint"`
	Scopes     []string `json:"scopes_supported"`
	Methods    []string `json:"token_endpoint_auth_methods_supported"`
	ByIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
}

// documentOf reads it, and checks that it is that of an issuer.
func documentOf(body []byte, issuer string) (document, error) {
	var d document
	if err := json.Unmarshal(body, &d); err != nil {
		return d, errors.New("its /.well-known/openid-configuration is not JSON of the form that OpenID Connect has")
	}
	if d.Issuer != issuer {
		return d, fmt.Errorf("its /.well-known/openid-configuration is of another issuer, %.200q", d.Issuer)
	}
	for name, value := range map[string]string{"authorization_endpoint": d.Authorize, "token_endpoint": d.Token} {
		if !secure(value) {
			return d, fmt.Errorf("its %s is %.200q, which is not an https URL", name, value)
		}
	}
	if !secure(d.Revocation) {
		d.Revocation = ""
	}
	return d, nil
}

func secure(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

// scopes are those to ask for: those that were named, or what names people and groups, and a token by which a session
// is renewed, where the provider says that it has them. Some refuse what they do not know; of one that says nothing is
// asked what OpenID Connect itself defines of a person.
func (d document) scopes(named []string) []string {
	out := []string{"openid"}
	if len(named) > 0 {
		return append(out, slices.DeleteFunc(slices.Clone(named), func(s string) bool { return s == "openid" })...)
	}
	if len(d.Scopes) == 0 {
		return append(out, "profile", "email")
	}
	for _, scope := range []string{"profile", "email", "groups", "offline_access"} {
		if slices.Contains(d.Scopes, scope) {
			out = append(out, scope)
		}
	}
	return out
}

// CheckScopes returns an error for scopes that cannot be asked for (RFC 6749, 3.3).
func CheckScopes(scopes []string) error {
	for _, one := range scopes {
		odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }
		if one == "" || strings.ContainsFunc(one, odd) {
			return fmt.Errorf("%.100q is not a scope: those are words of ASCII characters", one)
		}
	}
	return nil
}

// inHeader reports whether a client with a secret shows it in a header, as every provider must take it that does not
// say otherwise (OpenID Connect Discovery 1.0, 3), rather than in the body, where it is logged more often.
func (d document) inHeader() bool {
	return len(d.Methods) == 0 || slices.Contains(d.Methods, "client_secret_basic")
}

// Name is a provider's name for people: where it is.
func Name(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return issuer
	}
	return u.Host + strings.TrimSuffix(u.Path, "/")
}
