package penstock.kernel.json

/** The value that begins at byte `start` of the text does not fit: the type that it should have, and where it lies inside the field. */
final class Unfit(val start: Int, val wanted: String, val path: String) extends RuntimeException(wanted, null, false, false) {
  def under(outer: String): Unfit = new Unfit(start, wanted, outer + path)

  /** In words. `text` may have been read on meanwhile. */
  def reason(text: JsonText): String =
    s"${if (start == Unfit.Missing) "null" else Shown.value(text, start)} is not ${if ("AEIOU".contains(wanted.head)) "an" else "a"} $wanted"
}

object Unfit {

  /** There is no value where one has to be. */
  val Missing: Int = -1
}
