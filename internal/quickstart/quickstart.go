// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"k8s.io/kubectl/pkg/util/i18n"
)

// firstCollection is the garbage collector's percentage until it has run once: that is at a heap of 36 MB, more than
// the packages and a short command need.
const firstCollection = 800

// init, and not a function that main calls: when main begins, the time is spent.
func init() {
	if os.Getenv("GOGC") == "" {
		postponeGarbageCollection()
	}
	if !translated(os.Getenv) {
		// kubectl packs and unpacks its translations (13 ms) at the first text of any of its packages, for English too.
		// fails if they are loaded already: nothing is lost then
		_ = i18n.SetLoadTranslationsFunc(func() error { return nil })
	}
}

// postponeGarbageCollection keeps the collector from running while the heap is small, and then gives it back its usual
// pace.
func postponeGarbageCollection() {
	usual := debug.SetGCPercent(firstCollection)
	w := new([16]byte) // any object that nobody keeps: it goes with the first collection
	runtime.AddCleanup(w, func(percent int) { debug.SetGCPercent(percent) }, usual)
}

// translated reports whether kubectl has texts in the user's language, which it finds as kubectl does.
func translated(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if value := getenv(name); value != "" {
			language, _, _ := strings.Cut(value, ".")
			english := []string{"C", "POSIX", "en", "en_US", "default"}
			return !slices.Contains(english, language)
		}
	}
	return false
}
