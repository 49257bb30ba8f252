// SPDX-License-Identifier: Apache-2.0

package netfilter

import (
	"fmt"
	"strings"

	"github.com/google/nftables"
)

// ruleComment is the type of a comment in a rule's user data (libnftnl's NFTNL_UDATA_RULE_COMMENT).
const ruleComment = 0

// markPrefix begins the comment of a rule.
const markPrefix = "wherry "

// Mark is a rule's comment, in the form that nft shows.
func Mark(fingerprint string, i, n int) []byte {
	text := fmt.Sprintf("%s%s %d/%d", markPrefix, fingerprint, i+1, n)
	return append([]byte{ruleComment, byte(len(text) + 1)}, append([]byte(text), 0)...)
}

// parseMark is the way back.
func parseMark(data []byte) (fingerprint string, i, n int, ok bool) {
	if len(data) < 3 || data[0] != ruleComment {
		return "", 0, 0, false
	}
	text, found := strings.CutPrefix(strings.TrimRight(string(data[2:]), "\x00"), markPrefix)
	if !found {
		return "", 0, 0, false
	}
	if _, err := fmt.Sscanf(text, "%16s %d/%d", &fingerprint, &i, &n); err != nil {
		return "", 0, 0, false
	}
	return fingerprint, i - 1, n, true
}

// PrintOf is the fingerprint that the rules of a chain carry; empty if they are not those that were made together.
func PrintOf(rules []*nftables.Rule) string {
	whole := ""
	for at, r := range rules {
		fingerprint, i, n, ok := parseMark(r.UserData)
		if !ok || i != at || n != len(rules) || at > 0 && fingerprint != whole {
			return ""
		}
		whole = fingerprint
	}
	return whole
}
