/** What the page says: that the tag has no page, what happened, and what to do. */
export type LandingText = { title: string; what: string; next: string }

/** By language (BCP 47). */
export const landingTexts = {
  en: {
    title: "Nothing is set up for this tag yet",
    what: "Your phone read the tag, but no page has been chosen for it.",
    next: "If you bought something with this tag, please ask the brand. Opening this page has not used up the tag: you can tap it again at any time.",
  },
  ar: {
    title: "لم يتم إعداد أي شيء لهذه الشريحة بعد",
    what: "قرأ هاتفك الشريحة، لكن لم يتم اختيار صفحة لها.",
    next: "إذا اشتريت منتجًا يحمل هذه الشريحة، فيُرجى سؤال العلامة التجارية. فتح هذه الصفحة لم يستهلك الشريحة: يمكنك قراءتها مرة أخرى في أي وقت.",
  },
  de: {
    title: "Für diesen Chip ist noch nichts eingerichtet",
    what: "Ihr Handy hat den Chip gelesen, aber es ist noch keine Seite für ihn festgelegt.",
    next: "Wenn Sie etwas mit diesem Chip gekauft haben, fragen Sie bitte die Marke. Das Öffnen dieser Seite hat den Chip nicht verbraucht: Sie können Ihr Handy jederzeit wieder daran halten.",
  },
  es: {
    title: "Todavía no hay nada configurado para este chip",
    what: "Su teléfono ha leído el chip, pero no se ha elegido ninguna página para él.",
    next: "Si ha comprado un producto con este chip, pregunte a la marca. Abrir esta página no ha gastado el chip: puede volver a leerlo en cualquier momento.",
  },
  fr: {
    title: "Rien n’est encore configuré pour cette puce",
    what: "Votre téléphone a lu la puce, mais aucune page n’a été choisie pour elle.",
    next: "Si vous avez acheté un produit muni de cette puce, adressez-vous à la marque. L’ouverture de cette page n’a pas épuisé la puce : vous pouvez la lire à nouveau à tout moment.",
  },
  it: {
    title: "Per questo chip non è ancora configurato nulla",
    what: "Il telefono ha letto il chip, ma non è stata scelta una pagina per esso.",
    next: "Se ha acquistato un prodotto con questo chip, si rivolga al marchio. L’apertura di questa pagina non ha consumato il chip: può leggerlo di nuovo in qualsiasi momento.",
  },
  ja: {
    title: "このタグにはまだ何も設定されていません",
    what: "スマートフォンはタグを読み取りましたが、表示するページがまだ選ばれていません。",
    next: "このタグの付いた商品を購入された方は、ブランドにお問い合わせください。このページを開いてもタグは使用済みになりません。いつでももう一度読み取れます。",
  },
  ko: {
    title: "이 태그에는 아직 아무것도 설정되어 있지 않습니다",
    what: "휴대전화가 태그를 읽었지만, 표시할 페이지가 아직 정해지지 않았습니다.",
    next: "이 태그가 달린 제품을 구입하셨다면 브랜드에 문의해 주세요. 이 페이지를 열어도 태그는 소모되지 않으며, 언제든지 다시 읽을 수 있습니다.",
  },
  nl: {
    title: "Voor deze chip is nog niets ingesteld",
    what: "Uw telefoon heeft de chip gelezen, maar er is nog geen pagina voor gekozen.",
    next: "Hebt u iets met deze chip gekocht? Vraag het dan aan het merk. Door het openen van deze pagina is de chip niet verbruikt: u kunt hem altijd opnieuw lezen.",
  },
  pl: {
    title: "Dla tego chipa nic jeszcze nie skonfigurowano",
    what: "Telefon odczytał chip, ale nie wybrano dla niego żadnej strony.",
    next: "Jeśli masz produkt z tym chipem, zapytaj jego markę. Otwarcie tej strony nie zużyło chipa: możesz go odczytać ponownie w każdej chwili.",
  },
  pt: {
    title: "Ainda não há nada configurado para este chip",
    what: "O telefone leu o chip, mas nenhuma página foi escolhida para ele.",
    next: "Se comprou um produto com este chip, contacte a marca. Abrir esta página não gastou o chip: pode lê-lo de novo a qualquer momento.",
  },
  tr: {
    title: "Bu çip için henüz bir şey ayarlanmamış",
    what: "Telefonunuz çipi okudu, ancak çip için bir sayfa seçilmemiş.",
    next: "Bu çipi taşıyan bir ürün satın aldıysanız lütfen markaya sorun. Bu sayfayı açmak çipi tüketmedi: istediğiniz zaman yeniden okutabilirsiniz.",
  },
  "zh-Hans": {
    title: "此标签尚未设置任何内容",
    what: "您的手机已读取标签，但尚未为其选择页面。",
    next: "如果您购买了带有此标签的商品，请咨询品牌方。打开此页面不会消耗标签，您可以随时再次读取。",
  },
  "zh-Hant": {
    title: "此標籤尚未設定任何內容",
    what: "您的手機已讀取標籤，但尚未為其選擇頁面。",
    next: "如果您購買了附有此標籤的商品，請洽詢品牌。開啟此頁面不會消耗標籤，您可以隨時再次讀取。",
  },
} as const satisfies Record<string, LandingText>

/** A language that the page has. */
export type Language = keyof typeof landingTexts
