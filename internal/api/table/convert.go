// SPDX-License-Identifier: Apache-2.0

package table

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// NewConvertor returns the table convertor of a kind's storage. It takes single objects and lists; rows carry their
// objects, of which the API server keeps as much as the client asked for (includeObject).
func NewConvertor(kind string) rest.TableConvertor {
	printer, _ := For(kind)
	return &convertor{printer: printer, now: time.Now}
}

type convertor struct {
	printer Printer
	now     func() time.Time
}

// ConvertToTable implements rest.TableConvertor.
func (c *convertor) ConvertToTable(_ context.Context, obj runtime.Object,
	options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if opts, ok := options.(*metav1.TableOptions); !ok || opts == nil || !opts.NoHeaders {
		out.ColumnDefinitions = c.printer.Columns
	}
	now := c.now()
	add := func(item runtime.Object) error {
		row, err := c.row(item, now)
		if err == nil {
			out.Rows = append(out.Rows, row)
		}
		return err
	}
	if !meta.IsListType(obj) {
		if m, err := meta.CommonAccessor(obj); err == nil {
			out.ResourceVersion = m.GetResourceVersion()
		}
		return out, add(obj)
	}
	if m, err := meta.ListAccessor(obj); err == nil {
		out.ResourceVersion = m.GetResourceVersion()
		out.Continue = m.GetContinue()
		out.RemainingItemCount = m.GetRemainingItemCount()
	}
	// Never null: clients iterate over the rows of an empty list.
	out.Rows = make([]metav1.TableRow, 0, meta.LenList(obj))
	return out, meta.EachListItem(obj, add)
}

func (c *convertor) row(obj runtime.Object, now time.Time) (metav1.TableRow, error) {
	cells, err := c.printer.Row(obj, now)
	if err != nil {
		return metav1.TableRow{}, err
	}
	row := metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: obj}}
	if c.printer.Conditions != nil {
		row.Conditions = c.printer.Conditions(obj)
	}
	return row, nil
}
