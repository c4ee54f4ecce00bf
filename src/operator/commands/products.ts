import { inTurn } from "../../platform/context.ts"
import { presentProduct } from "../../resources/products/present.ts"
import { createProduct, listProducts } from "../../resources/products/service.ts"
import type { Command } from "./command.ts"
import { fields, table } from "./text.ts"

export const productCommands: Command[] = [
  {
    name: "products create",
    does: "creates a product, which units refer to by product_id",
    takes: "--organization ID --name N [--external-id X] [--redirect-url U]",
    options: { organization: true, name: true, "external-id": false, "redirect-url": false },
    plan:
      (values) =>
      async ({ context }) => {
        const input = {
          organization_id: values.required("organization"),
          name: values.required("name"),
          external_id: values.option("external-id"),
          redirect_url: values.option("redirect-url"),
        }
        const product = presentProduct(await inTurn(context, null, (turn) => createProduct(turn, input)))
        const { id, external_id, name, redirect_url } = product
        return { document: product, text: fields({ id, external_id, name, redirect_url }) }
      },
  },
  {
    name: "products list",
    does: "lists an organization's products",
    takes: "--organization ID",
    options: { organization: true },
    plan:
      (values) =>
      async ({ context }) => {
        const rows = await listProducts(context.db.read, values.required("organization"))
        const products = rows.map(presentProduct)
        return {
          document: { products },
          text: table(products, {
            ID: "id",
            "EXTERNAL ID": "external_id",
            NAME: "name",
            REDIRECT: "redirect_url",
            CREATED: "created_at",
          }),
        }
      },
  },
]
