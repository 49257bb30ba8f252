// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	page "github.com/wherryproject/wherry/internal/ui/oidc"
)

// setProvider finds out where people may sign in to the page, and by which secret the page is known there.
func (s *Completed) setProvider() (err error) {
	o := page.Options{Issuer: s.OIDC.IssuerURL, ClientID: s.OIDC.ClientID, Scopes: s.OIDC.Scopes, Now: time.Now}
	if o.Secret, err = readSecret(s.OIDC.SecretFile); err != nil {
		return fmt.Errorf("--ui-oidc-client-secret-file: %w", err)
	}
	if err := page.CheckScopes(o.Scopes); err != nil {
		return fmt.Errorf("--ui-oidc-scopes: %w", err)
	}
	if o.Issuer == "" || len(s.jwt) == 0 {
		if len(o.Scopes) > 0 {
			return errors.New("--ui-oidc-scopes needs --oidc-issuer-url and --oidc-client-id, with which people sign in")
		}
		if o.Secret != "" {
			return errors.New("--ui-oidc-client-secret-file needs --oidc-issuer-url and --oidc-client-id, whose secret it is")
		}
		return nil
	}
	o.CA = []byte(s.jwt[0].Issuer.CertificateAuthority)
	s.Provider, err = page.New(o)
	return err
}

func readSecret(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(data))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return secret, nil
}
