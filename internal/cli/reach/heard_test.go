// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"errors"
	"slices"
	"testing"
)

// TestHeard: a server that goes away and comes back is told of once each, not for each request, and one that has never answered is not said to
// have gone.
func TestHeard(t *testing.T) {
	var told []bool
	h := &hearing{notify: func(away bool) { told = append(told, away) }}
	gone, refused := &Away{"does not respond", nil}, errors.New("the answer broke off")
	for _, err := range []error{gone, nil, nil, refused, gone, gone, refused, gone, nil, nil, gone} {
		h.note(err)
	}
	if want := []bool{true, false, true}; !slices.Equal(told, want) {
		t.Errorf("told %v; want %v", told, want)
	}
}
