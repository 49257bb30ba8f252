// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/wherryproject/wherry/internal/pki"
)

const (
	adminUser = "wherry-admin"
	// serverUser is who this server is towards the nodes' HTTPS APIs.
	serverUser = "wherry-apiserver"

	// tokenCacheTTL is how long a checked token stays good without another look at the store.
	tokenCacheTTL = 10 * time.Second
)

// newAuthenticator knows people and programs by client certificate, by a token of the admin's or the configured file, and by
// service account tokens. Whoever shows nothing is refused.
func newAuthenticator(s *settled, ca *pki.CA, accounts *tokens) (authenticator.Request, error) {
	static := map[string]*user.DefaultInfo{}
	admin, err := adminToken(filepath.Join(s.pki, "admin.token"))
	if err != nil {
		return nil, err
	}
	static[admin] = &user.DefaultInfo{Name: adminUser, UID: adminUser, Groups: []string{user.SystemPrivilegedGroup}}

	byToken := []authenticator.Token{tokenfile.New(static)}
	if s.TokenAuthFile != "" {
		file, err := tokenfile.NewCSV(s.TokenAuthFile)
		if err != nil {
			return nil, fmt.Errorf("token file %s: %w", s.TokenAuthFile, err)
		}
		byToken = append(byToken, file)
	}
	byToken = append(byToken, tokencache.New(accounts, false, tokenCacheTTL, tokenCacheTTL))
	token := authenticator.WrapAudienceAgnosticToken(authenticator.Audiences{issuer}, tokenunion.NewFailOnError(byToken[:len(byToken)-1]...))
	all := tokenunion.New(token, byToken[len(byToken)-1])

	options := requestx509.DefaultVerifyOptions()
	options.Roots = ca.Pool()
	options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	certificate := authenticator.WrapAudienceAgnosticRequest(authenticator.Audiences{issuer},
		requestx509.New(options, requestx509.CommonNameUserConversion))

	return group.NewAuthenticatedGroupAdder(union.New(certificate, bearertoken.New(all), websocket.NewProtocolAuthenticator(all))), nil
}

// adminToken reads the admin's bearer token, or makes one at the first start. Only root may read the file.
func adminToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err == nil {
		token := strings.TrimSpace(string(data))
		if token == "" {
			return "", fmt.Errorf("admin token %s: the file is empty; remove it to get a new token", file)
		}
		return token, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("admin token: %w", err)
	}
	token, err := randomToken()
	if err != nil {
		return "", err
	}
	return token, pki.WriteFile(file, []byte(token+"\n"), 0o600)
}

func randomToken() (string, error) {
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
