// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"
)

// claims are what is read of an ID token, which has not been verified.
type claims struct {
	Subject string
	Nonce   string
	Expires time.Time
}

// claimsOf reads an ID token.
func claimsOf(token string) (c claims, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errors.New("its ID token is not a JWT: it has not three parts")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, errors.New("its ID token is not a JWT: the second part is not base64url")
	}
	var in struct {
		Sub, Nonce string
		Exp        float64
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return c, errors.New("its ID token is not a JWT: the second part is not JSON with sub, nonce and exp")
	}
	if in.Sub == "" || in.Exp <= 0 || in.Exp > math.MaxInt32*4 {
		return c, errors.New("its ID token has no sub, or no exp")
	}
	return claims{in.Sub, in.Nonce, time.Unix(int64(in.Exp), 0)}, nil
}
