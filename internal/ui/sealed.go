// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// sealer has a browser keep, unread and unchanged, what is known of its sign-in before there is a session: so nobody
// who has not signed in takes any memory here. Another start of the server has another key.
type sealer struct{ by cipher.AEAD }

func newSealer() *sealer {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails: it ends the process instead
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return &sealer{} // never: the key has the length of one
	}
	by, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return &sealer{} // never: it is AES
	}
	return &sealer{by}
}

// kept is what a browser keeps: a sign-in that goes on, or why it came to nothing.
type kept struct {
	State, Nonce, Verifier string    `json:",omitempty"`
	Session                string    `json:",omitempty"` // the hash of the secret of the one before, in hex
	To                     string    `json:",omitempty"` // the view to come to
	Problem                string    `json:",omitempty"`
	Until                  time.Time // it is of no use later
}

// seal is what is to be kept, as the value of a cookie.
func (s *sealer) seal(k kept) string {
	text, err := json.Marshal(k)
	if err != nil || s.by == nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(s.by.Seal(nil, nil, text, nil))
}

// fit seals what has to fit into some bytes: without the view to come to, or with words that are cut, if it does not.
func (s *sealer) fit(k kept, most int) string {
	sealed := s.seal(k)
	if len(sealed) > most {
		k.To = ""
		sealed = s.seal(k)
	}
	words := k.Problem
	for n := len(words) * 3 / 4; len(sealed) > most && n > 0; n = n * 3 / 4 {
		k.Problem = strings.ToValidUTF8(words[:n], "") + " …"
		sealed = s.seal(k)
	}
	return sealed
}

// open is what was sealed here; nil if it was not, or is too old.
func (s *sealer) open(value string, now time.Time) *kept {
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || s.by == nil {
		return nil
	}
	text, err := s.by.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil
	}
	var k kept
	if json.Unmarshal(text, &k) != nil || !now.Before(k.Until) {
		return nil
	}
	return &k
}
