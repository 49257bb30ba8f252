// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/datadir"
)

// Where says which server and namespace a command means.
type Where struct {
	Kubeconfig string
	Context    string
	Namespace  string
	DataDir    string

	dataDir *pflag.Flag
}

// AddFlags adds the flags of w.
func (w *Where) AddFlags(fl *pflag.FlagSet) {
	fl.StringVarP(&w.Namespace, "namespace", "n", "", "namespace to use; default: the kubeconfig's")
	w.AddServerFlags(fl)
}

// AddServerFlags is AddFlags for what is in no namespace.
func (w *Where) AddServerFlags(fl *pflag.FlagSet) {
	fl.StringVar(&w.Kubeconfig, "kubeconfig", "",
		"kubeconfig of the server to use; default: that of --data-dir, $KUBECONFIG, or this machine's server")
	fl.StringVar(&w.Context, "context", "", "context to use from the kubeconfig")
	fl.StringVar(&w.DataDir, "data-dir", DataDir(), "data folder of this machine's server (also $WHERRY_DATA_DIR)")
	w.dataDir = fl.Lookup("data-dir")
}

// Variable is the KUBECONFIG of the environment, unless --data-dir says which server is meant: a flag counts for more
// than a variable.
func (w *Where) Variable(getenv func(string) string) string {
	if w.DataDirGiven() {
		return ""
	}
	return getenv("KUBECONFIG")
}

// DataDirGiven reports whether --data-dir was given.
func (w *Where) DataDirGiven() bool { return w.dataDir != nil && w.dataDir.Changed }

// DataDir is the data folder of commands that are given none.
func DataDir() string {
	if dir := os.Getenv(datadir.Variable); dir != "" {
		return dir
	}
	return datadir.Default
}
